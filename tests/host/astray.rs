//! An agent that is in another conversation than its session: that is reported, and the session keeps its own.

use abide_testkit::eventually;

use crate::conversations::{Agents, machine};

/// What the row of the session says of the conversation that its agent strayed into.
fn astray(host: &Agents, id: &str) -> Option<serde_json::Value> {
    Some(host.row(id).unwrap()["sessions"][0]["astray"].clone()).filter(|astray| !astray.is_null())
}

#[test]
fn a_resume_that_comes_up_in_another_conversation_is_reported_and_the_next_one_goes_to_the_wanted() {
    let mut host = machine();
    host.add_program("swallow", "exec claude --model opus");
    host.configure("[agents.claude]\ncommand = [\"swallow\"]\n");
    let id = host.load_agent("claude", &[]);
    host.say(&id, "remember the milk");
    host.stop(&id);
    let wanted = host.conversation(&id);
    let resumed = host.resume(&id).stderr;
    let strayed = eventually("where it came up to be known", || astray(&host, &id));
    let other = strayed["id"].as_str().unwrap();
    assert_ne!(other, wanted);
    assert_eq!(strayed["reason"], "came-up-elsewhere");
    let told = format!("should have resumed {wanted}, but is in conversation {other}");
    assert!(resumed.contains(&told), "{resumed}");
    let explained = host.abide(["explain", &id]).ok();
    assert!(explained.contains(&told), "{explained}");
    assert!(host.abide(["ls"]).ok().contains("not in the conversation it resumed"));
    host.say(&id, "where am I");
    let listed = host.abide(["conversations"]).ok();
    assert!(listed.contains(&format!("also {id}/s1")), "{listed}");
    assert_eq!(host.conversation(&id), wanted);

    let stopped = host.abide(["stop", &id]);
    assert!(stopped.stderr.contains(&told), "{}", stopped.stderr);
    host.add_program("swallow", "exec claude --model opus \"$@\"");
    let resumed = host.resume(&id).stderr;
    assert!(resumed.contains("in its last run, claude should have resumed"), "{resumed}");
    host.wait_for_screen(&id, "resumed: remember the milk");
    assert_eq!(astray(&host, &id), None);
    // What the agent goes to later by itself is followed as ever.
    host.say(&id, "/clear");
    eventually("the new conversation to be bound", || (host.conversation(&id) != wanted).then_some(()));
    assert_eq!(astray(&host, &id), None);
}

#[test]
fn a_session_that_goes_into_another_ones_conversation_is_reported_until_it_is_back() {
    let host = machine();
    let (holder, guest) = (host.load_agent("claude", &[]), host.load_agent("claude", &[]));
    host.say(&holder, "the holder's");
    host.say(&guest, "the guest's");
    let (held, own) = (host.conversation(&holder), host.conversation(&guest));
    host.say(&guest, &format!("/resume {held}"));
    let strayed = eventually("it to be seen astray", || astray(&host, &guest));
    assert_eq!((strayed["id"].as_str(), strayed["reason"].as_str()), (Some(held.as_str()), Some("held")));
    assert_eq!(strayed["held_by"], format!("ab-{holder}/s1"));
    assert_eq!(host.conversation(&guest), own);
    let told = format!("is in conversation {held}, which belongs to ab-{holder}/s1");
    let explained = host.abide(["explain", &guest]).ok();
    assert!(explained.contains(&told), "{explained}");
    assert!(host.abide(["ls"]).ok().contains("in another session's conversation"));
    let listed = host.abide(["conversations"]).ok();
    assert!(listed.contains(&format!("also {guest}/s1")), "{listed}");

    host.say(&guest, &format!("/resume {own}"));
    eventually("it to be back", || astray(&host, &guest).is_none().then_some(()));
    host.say(&guest, &format!("/resume {held}"));
    eventually("it to be seen astray again", || astray(&host, &guest));
    let stopped = host.abide(["stop", &guest]);
    assert!(stopped.stderr.contains(&told), "{}", stopped.stderr);
    host.resume(&guest);
    host.wait_for_screen(&guest, "resumed: the guest's");
}
