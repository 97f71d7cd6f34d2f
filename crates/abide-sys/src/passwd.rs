//! The user database, read by hand: a static binary must not load the modules of the system's resolver.

use std::path::PathBuf;

/// What the passwd file says about a user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PasswdEntry {
    pub name: String,
    /// The home directory; `None` where the entry names none.
    pub home: Option<PathBuf>,
}

/// The entry of the user `uid`; `None` for one who is in no passwd file.
pub fn entry(uid: u32) -> Option<PasswdEntry> {
    parse(&std::fs::read_to_string("/etc/passwd").ok()?, uid)
}

fn parse(passwd: &str, uid: u32) -> Option<PasswdEntry> {
    passwd.lines().find_map(|line| {
        let fields: Vec<&str> = line.split(':').collect();
        let is_it = fields.get(2).and_then(|field| field.parse().ok()) == Some(uid);
        let name = fields.first().filter(|name| is_it && !name.is_empty())?;
        let home = fields.get(5).map(PathBuf::from).filter(|home| home.is_absolute());
        Some(PasswdEntry { name: (*name).to_owned(), home })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_homes_are_read_without_the_resolver() {
        let passwd = "root:x:0:0::/root:/bin/sh\nbroken\nada:x:1000:1000::/home/ada:/bin/sh\nbob:x:7:7\n";
        let ada = PasswdEntry { name: "ada".into(), home: Some("/home/ada".into()) };
        assert_eq!(parse(passwd, 1000), Some(ada));
        assert_eq!(parse(passwd, 7), Some(PasswdEntry { name: "bob".into(), home: None }));
        assert_eq!(parse(passwd, 1), None);
    }
}
