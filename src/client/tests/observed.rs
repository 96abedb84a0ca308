//! Devices with an observer: nothing is kept, nobody reads events, and the observer misses nothing.

use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::Semaphore;

use super::*;

/// Notes what it hears: pushed and pulled ids, and everything else by name.
#[derive(Debug, Default)]
struct Notes {
    heard: Mutex<Vec<String>>,
    is_synced: AtomicBool,
}

impl Observer for Notes {
    fn observe(&self, event: &DeviceEvent) {
        let note = match event {
            DeviceEvent::Push { push: Push::PrivateMessage(row), .. } => format!("pushed {}", row.id),
            DeviceEvent::Pulled(pulled) => {
                format!("pulled {:?}", pulled.private.iter().map(|row| row.id.0).collect::<Vec<_>>())
            }
            DeviceEvent::Synced => {
                self.is_synced.store(true, Ordering::SeqCst);
                "synced".to_owned()
            }
            other => format!("{other:?}").split(' ').next().unwrap().to_owned(),
        };
        self.heard.lock().unwrap().push(note);
    }
}

impl Notes {
    async fn until(&self, note: &str) {
        let is_there = || self.heard.lock().unwrap().iter().any(|heard| heard == note);
        tokio::time::timeout(Duration::from_secs(10), async {
            while !is_there() {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        })
        .await
        .unwrap_or_else(|_| panic!("{note}: {:?}", self.heard));
    }
}

fn observed(stub: &Stub, notes: Arc<Notes>) -> Device {
    let config = DeviceConfig { store_capacity: 0, event_capacity: 1, ..stub.device().config().clone() };
    let tokens = Tokens {
        user_id: UserId(1),
        access_token: "old".to_owned(),
        refresh_token: "refresh".to_owned(),
        expires_time: 0,
    };
    Device::observed(stub.endpoint.clone(), tokens, config, notes)
}

#[tokio::test]
async fn an_observer_hears_of_everything_though_nobody_reads_events() {
    let mut stub = Stub::start(|call, _| pull(call, 5)).await;
    let notes = Arc::new(Notes::default());
    let device = observed(&stub, notes.clone());
    let mut connection = device.connect();
    connection.ignore_events();
    let mut socket = stub.socket().await;
    notes.until("synced").await;
    for id in [6, 7, 7] {
        socket.send(frame(id)).await.unwrap();
    }
    notes.until("pushed 7").await;
    connection.cut().await;
    assert!(!matches!(socket.next().await, Some(Ok(_))));
    device.sync_observed().await.unwrap();
    let heard = notes.heard.lock().unwrap().clone();
    assert_eq!(heard[..5], ["Connected", "pulled [1, 2]", "pulled [3, 4]", "pulled [5]", "synced"], "{heard:?}");
    assert_eq!(heard[5..7], ["pushed 6", "pushed 7"], "{heard:?}");
    device.with_store(|store| {
        // The cursor is where the pulls were, and nothing is kept.
        assert_eq!((store.private_cursor(), store.private_messages().count(), store.duplicates()), (5, 0, 0));
    });
}

#[tokio::test]
async fn a_device_that_is_told_not_to_pull_does_not() {
    let mut stub = Stub::start(|call, _| pull(call, 5)).await;
    let notes = Arc::new(Notes::default());
    let device = observed(&stub, notes.clone());
    let config = DeviceConfig { pull_on_connect: false, ..device.config().clone() };
    let device = Device::observed(stub.endpoint.clone(), device.api().tokens().await, config, notes.clone());
    let _connection = device.connect();
    let mut socket = stub.socket().await;
    socket.send(frame(6)).await.unwrap();
    notes.until("pushed 6").await;
    assert!(stub.calls("POST sync").is_empty() && !notes.is_synced.load(Ordering::SeqCst));
}

#[tokio::test]
async fn everything_comes_from_the_given_address() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let source: IpAddr = "127.0.0.9".parse().unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    let endpoint = Endpoint::from_source(&base, Some(source), Arc::new(Semaphore::new(1)), REQUEST_TIMEOUT).unwrap();
    let tokens = Tokens {
        user_id: UserId(1),
        access_token: "old".to_owned(),
        refresh_token: "refresh".to_owned(),
        expires_time: 0,
    };
    let request = endpoint.get_text("/healthz");
    let (_, accepted) = tokio::join!(tokio::time::timeout(Duration::from_millis(200), request), listener.accept());
    assert_eq!(accepted.unwrap().1.ip(), source);
    let _connection = Device::new(endpoint, tokens, DeviceConfig::default()).connect();
    assert_eq!(listener.accept().await.unwrap().1.ip(), source);
}
