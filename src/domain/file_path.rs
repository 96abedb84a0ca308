//! Where an uploaded file is found: `[directory/]date/random/name`. The random part cannot be guessed, so two uploads
//! never share a path and nobody finds a file whose URL was not shown to them. Bytes are stored under date and random
//! part alone; directory and name only say what the file is and how it is shown.

use crate::domain::refusal::Refusal;

/// Bytes of a file name at most.
const MAX_NAME_BYTES: usize = 200;
/// Bytes of a directory at most.
const MAX_DIRECTORY_BYTES: usize = 120;
/// Hexadecimal digits of the random part.
const RANDOM_DIGITS: usize = 32;

/// A checked path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilePath {
    /// Segments joined by `/`; may be empty.
    directory: String,
    /// `yyyyMMdd`.
    date: String,
    random: String,
    name: String,
}

/// How a file is shown to those who open its URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Presentation {
    pub media_type: &'static str,
    /// Shown by browsers; everything else is only ever saved, so that nothing from a stranger runs in our origin.
    pub is_inline: bool,
}

/// Media types by extension. Pictures are shown inline; SVG, HTML and XML are not in the list on purpose.
const TYPES: &[(&str, Presentation)] = &[
    ("png", Presentation { media_type: "image/png", is_inline: true }),
    ("jpg", Presentation { media_type: "image/jpeg", is_inline: true }),
    ("jpeg", Presentation { media_type: "image/jpeg", is_inline: true }),
    ("gif", Presentation { media_type: "image/gif", is_inline: true }),
    ("webp", Presentation { media_type: "image/webp", is_inline: true }),
    ("bmp", Presentation { media_type: "image/bmp", is_inline: true }),
    ("avif", Presentation { media_type: "image/avif", is_inline: true }),
    ("mp4", Presentation { media_type: "video/mp4", is_inline: false }),
    ("m4v", Presentation { media_type: "video/mp4", is_inline: false }),
    ("webm", Presentation { media_type: "video/webm", is_inline: false }),
    ("mov", Presentation { media_type: "video/quicktime", is_inline: false }),
    ("mp3", Presentation { media_type: "audio/mpeg", is_inline: false }),
    ("m4a", Presentation { media_type: "audio/mp4", is_inline: false }),
    ("aac", Presentation { media_type: "audio/aac", is_inline: false }),
    ("ogg", Presentation { media_type: "audio/ogg", is_inline: false }),
    ("wav", Presentation { media_type: "audio/wav", is_inline: false }),
    ("amr", Presentation { media_type: "audio/amr", is_inline: false }),
    ("pdf", Presentation { media_type: "application/pdf", is_inline: false }),
    ("zip", Presentation { media_type: "application/zip", is_inline: false }),
    ("txt", Presentation { media_type: "text/plain; charset=utf-8", is_inline: false }),
];

const UNKNOWN: Presentation = Presentation { media_type: "application/octet-stream", is_inline: false };

impl FilePath {
    /// The path of a new file.
    ///
    /// # Errors
    /// [`Refusal::FileNameInvalid`] (1001003003): an empty or long name, one with a separator, a drive letter or a
    /// control character; a directory that is long, absolute, or has other segments than letters, digits, `-`, `_`.
    pub fn new(directory: &str, date: String, random: u128, name: &str) -> Result<FilePath, Refusal> {
        check_name(name)?;
        check_directory(directory)?;
        let random = format!("{random:0RANDOM_DIGITS$x}");
        Ok(FilePath { directory: directory.to_owned(), date, random, name: name.to_owned() })
    }

    /// Reads what [`FilePath::text`] wrote; `None` for everything else.
    pub fn parse(text: &str) -> Option<FilePath> {
        let (rest, name) = text.rsplit_once('/')?;
        let (rest, random) = rest.rsplit_once('/')?;
        let (directory, date) = rest.rsplit_once('/').unwrap_or(("", rest));
        let is_hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        let is_right = check_name(name).is_ok()
            && check_directory(directory).is_ok()
            && (directory.is_empty() != rest.contains('/'))
            && random.len() == RANDOM_DIGITS
            && random.bytes().all(is_hex)
            && date.len() == 8
            && date.bytes().all(|byte| byte.is_ascii_digit());
        is_right.then(|| FilePath {
            directory: directory.to_owned(),
            date: date.to_owned(),
            random: random.to_owned(),
            name: name.to_owned(),
        })
    }

    /// The path in a URL, not yet percent-encoded.
    pub fn text(&self) -> String {
        let separator = if self.directory.is_empty() { "" } else { "/" };
        format!("{}{separator}{}/{}/{}", self.directory, self.date, self.random, self.name)
    }

    /// The key of the stored bytes.
    pub fn key(&self) -> String {
        format!("{}/{}", self.date, self.random)
    }

    /// The random part: what is stored under it never changes.
    pub fn random(&self) -> &str {
        &self.random
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// By the extension of the name alone; what a client said of the type is not believed.
    pub fn presentation(&self) -> Presentation {
        let Some((_, extension)) = self.name.rsplit_once('.') else { return UNKNOWN };
        let extension = extension.to_ascii_lowercase();
        let known = TYPES.iter().find(|(name, _)| *name == extension);
        known.map_or(UNKNOWN, |(_, presentation)| *presentation)
    }
}

fn check_name(name: &str) -> Result<(), Refusal> {
    let has_drive = name.as_bytes().get(1) == Some(&b':');
    let is_bad = |character: char| matches!(character, '/' | '\\') || character.is_control();
    let is_dots = name.chars().all(|character| character == '.');
    if name.is_empty() || name.len() > MAX_NAME_BYTES || has_drive || is_dots || name.chars().any(is_bad) {
        return Err(Refusal::FileNameInvalid);
    }
    Ok(())
}

fn check_directory(directory: &str) -> Result<(), Refusal> {
    let is_plain = |character: char| character.is_ascii_alphanumeric() || matches!(character, '-' | '_');
    let is_segment = |segment: &str| !segment.is_empty() && segment.chars().all(is_plain);
    if directory.is_empty() || (directory.len() <= MAX_DIRECTORY_BYTES && directory.split('/').all(is_segment)) {
        return Ok(());
    }
    Err(Refusal::FileNameInvalid)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    const RANDOM: u128 = 0xab;
    const HEX: &str = "000000000000000000000000000000ab";

    fn new(directory: &str, name: &str) -> Result<FilePath, Refusal> {
        FilePath::new(directory, "20261201".to_owned(), RANDOM, name)
    }

    #[rstest]
    #[case::plain("", "cat.png", "20261201/{}/cat.png")]
    #[case::directory("im/avatar", "cat.png", "im/avatar/20261201/{}/cat.png")]
    #[case::unicode("", "猫 of mine.PNG", "20261201/{}/猫 of mine.PNG")]
    #[case::like_a_date("20200101", "a", "20200101/20261201/{}/a")]
    fn what_was_written_is_read_again(#[case] directory: &str, #[case] name: &str, #[case] expected: &str) {
        let path = new(directory, name).unwrap();
        assert_eq!(path.text(), expected.replace("{}", HEX));
        assert_eq!(FilePath::parse(&path.text()), Some(path.clone()));
        assert_eq!(path.key(), format!("20261201/{HEX}"));
    }

    #[rstest]
    #[case::empty("", "")]
    #[case::separator("", "a/b.png")]
    #[case::backslash("", "a\\b.png")]
    #[case::drive("", "C:cat.png")]
    #[case::traversal("", "..")]
    #[case::control("", "a\nb")]
    #[case::parent_directory("../up", "a")]
    #[case::absolute_directory("/etc", "a")]
    #[case::trailing_slash("a/", "a")]
    #[case::double_slash("a//b", "a")]
    #[case::dotted_directory("a.b", "a")]
    fn others_are_refused(#[case] directory: &str, #[case] name: &str) {
        assert_eq!(new(directory, name), Err(Refusal::FileNameInvalid));
    }

    #[test]
    fn long_names_and_directories_are_refused() {
        assert!(new("", &"n".repeat(MAX_NAME_BYTES)).is_ok());
        assert!(new("", &"n".repeat(MAX_NAME_BYTES + 1)).is_err());
        assert!(new(&"d".repeat(MAX_DIRECTORY_BYTES + 1), "a").is_err());
    }

    #[rstest]
    #[case("")]
    #[case("cat.png")]
    #[case("20261201/cat.png")]
    #[case("20261201/000000000000000000000000000000ab")]
    #[case("20261201/000000000000000000000000000000AB/cat.png")]
    #[case("2026/000000000000000000000000000000ab/cat.png")]
    #[case("../20261201/000000000000000000000000000000ab/cat.png")]
    #[case("/20261201/000000000000000000000000000000ab/cat.png")]
    #[case("a//20261201/000000000000000000000000000000ab/cat.png")]
    #[case("20261201/../000000000000000000000000000000ab/cat.png")]
    fn foreign_paths_are_not_read(#[case] text: &str) {
        assert_eq!(FilePath::parse(text), None);
    }

    #[rstest]
    #[case("cat.PNG", "image/png", true)]
    #[case("film.mp4", "video/mp4", false)]
    #[case("page.html", "application/octet-stream", false)]
    #[case("drawing.svg", "application/octet-stream", false)]
    #[case("feed.xml", "application/octet-stream", false)]
    #[case("no extension", "application/octet-stream", false)]
    #[case("png", "application/octet-stream", false)]
    fn only_harmless_pictures_are_shown(#[case] name: &str, #[case] media_type: &'static str, #[case] is_inline: bool) {
        assert_eq!(new("", name).unwrap().presentation(), Presentation { media_type, is_inline });
    }
}
