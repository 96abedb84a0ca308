// Starts the page: the chat for who is signed in, else the form. Tells the client when the page is looked at again and
// when the network is back.

import { NudgeClient } from '../sdk/nudge.js'
import { errorText, language, t } from '../texts.js'
import * as session from './session.js'
import { chatPage } from './shell.js'
import { signInPage } from './signin.js'

const root = document.getElementById('app')
/** What runs for the signed-in user: the client, its page, its device. */
let running = null

function showSignIn(notice) {
  root.replaceChildren(signInPage((login) => {
    session.signedIn(login)
    showChat(login.userId)
  }, notice))
  root.querySelector('input').focus()
}

async function showChat(user) {
  const device = await session.takeDevice(user)
  const client = new NudgeClient({ tokens: session.loginsOf(user), device: device.name, persistence: device.persistence })
  const page = chatPage(client, { signOut, leave })
  running = { user, client, page, device }
  client.addEventListener('signedout', () => end(user, t('signedOut')))
  root.replaceChildren(page.element)
  await client.start()
}

/** Ends the login, for all tabs, and removes what they keep. */
async function signOut() {
  const { user, client } = running
  try {
    await client.api.signOut()
  } catch (error) {
    // 401: it has ended already.
    if (error.code !== 401) return running.page.notify(errorText(error))
  }
  session.loginsOf(user).clear()
  await end(user)
}

/** Another user in this tab; the login stays. */
async function leave() {
  await stop()
  session.leave()
  showSignIn()
}

/** The login has ended. What this device keeps goes with it where somebody signed out in this browser. */
async function end(user, notice) {
  if (running?.user !== user) return
  const isWanted = session.loginsOf(user).get() === null
  await stop()
  session.loginsOf(user).clear()
  if (isWanted) await session.removeData(user)
  session.leave()
  showSignIn(notice)
}

async function stop() {
  const { client, page, device } = running
  running = null
  page.stop()
  await client.stop()
  device.release()
}

document.documentElement.lang = language
document.addEventListener('visibilitychange', () => {
  if (document.visibilityState !== 'visible' || !running) return
  running.client.comeBack('visible')
  running.page.looked()
})
addEventListener('online', () => running?.client.comeBack('online'))
addEventListener('offline', () => running?.page.looked())

const user = session.currentUser()
if (user) showChat(user)
else showSignIn()
