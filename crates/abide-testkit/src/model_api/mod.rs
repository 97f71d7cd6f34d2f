//! A model that answers as the test says, behind the interfaces that the agents speak: Anthropic's messages, OpenAI's
//! responses and chat completions, and Gemini's. It listens on loopback and knows no time: an answer that is held stays held
//! until the test lets it go on.
//!
//! It owns what is answered; `dialect` owns how each interface spells it, `http` the wire.

mod anthropic;
mod chat;
mod dialect;
mod gemini;
mod http;
mod responses;

use std::io;
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use serde_json::{Value, json};

use dialect::{Answer, Dialect, Tool, ToolCall};
use http::HttpRequest;

/// What a prompt is answered with.
#[derive(Debug, Clone)]
pub enum ModelReply {
    /// `answer N`, where N counts the prompts of the test that the request holds: a history that was not sent shows.
    Answer,
    /// An answer that begins with this text, and ends only when the test lets it.
    Hold(String),
    /// The call of a tool that runs this shell command, and `tool said: …` when it has.
    Run(String),
    /// An HTTP status instead of an answer.
    Refuse(u16),
}

/// One part of the conversation that an agent sends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Turn {
    /// What the user said, and what the agent said in the user's name.
    User(String),
    /// What the model said.
    Model(String),
    /// A tool that the model called.
    Call(String),
    /// What that gave.
    Result(String),
}

/// A model that runs until the test ends.
pub struct ModelApi {
    url: String,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    replies: Vec<(String, ModelReply)>,
    asked: Vec<Vec<Turn>>,
    /// Counts the times that the held answers were let go on.
    released: u64,
}

impl ModelApi {
    /// Begins to listen on a port of its own.
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let state = Arc::new(Mutex::new(State::default()));
        let shared = Arc::clone(&state);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let state = Arc::clone(&shared);
                // An agent that was killed leaves a broken connection, which is no failure.
                std::thread::spawn(move || serve(&stream, &state).ok());
            }
        });
        Self { url, state }
    }

    /// Where it listens: scheme, address and port.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// From now on a conversation whose newest prompt holds `prompt` is answered with `reply`. The prompts of a conversation
    /// must not contain each other.
    pub fn on(&self, prompt: &str, reply: ModelReply) {
        let mut state = lock(&self.state);
        state.replies.retain(|(known, _)| known != prompt);
        state.replies.push((prompt.to_owned(), reply));
    }

    /// Lets the answers go on that are held now.
    pub fn release(&self) {
        lock(&self.state).released += 1;
    }

    /// What was sent in each request that a prompt of the test led to, in their order.
    pub fn asked(&self) -> Vec<Vec<Turn>> {
        lock(&self.state).asked.clone()
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

fn serve(stream: &TcpStream, state: &Mutex<State>) -> io::Result<()> {
    let request = HttpRequest::read(stream)?;
    if request.path.ends_with("/models") {
        let models =
            json!([{ "id": "test-model", "object": "model", "type": "model", "display_name": "Test" }]);
        return http::json(stream, 200, &json!({ "object": "list", "data": models, "has_more": false }));
    }
    let Some(dialect) = dialect::of(&request) else {
        return http::json(
            stream,
            404,
            &json!({ "error": { "message": "the test's model has no such thing" } }),
        );
    };
    let released = lock(state).released;
    let answer = answer(&*dialect, &request.body, &mut lock(state));
    match answer {
        Err(status) => {
            let message = format!("refused with {status}");
            let error = json!({ "type": "refused", "message": message, "code": status });
            http::json(stream, status, &json!({ "type": "error", "error": error }))
        }
        Ok(answer) if !dialect.streams(&request) => http::json(stream, 200, &dialect.whole(&answer)),
        Ok(answer) => {
            http::begin_events(stream)?;
            http::events(stream, &dialect.beginning(&answer))?;
            while answer.held && lock(state).released == released {
                http::still_there(stream, Duration::from_millis(20))?;
            }
            http::events(stream, &dialect.ending(&answer))
        }
    }
}

/// What is answered to a request; the status that refuses it otherwise.
fn answer(dialect: &dyn Dialect, body: &Value, state: &mut State) -> Result<Answer, u16> {
    if let Some(schema) = dialect.schema(body) {
        return Ok(Answer::text(dialect::example(schema).to_string()));
    }
    let (turns, tools) = (dialect.turns(body), dialect.tools(body));
    let Some((index, reply)) = newest_prompt(&turns, &state.replies) else {
        return Ok(Answer::text("A title".to_owned()));
    };
    // What an agent asks beside the conversation, such as a title for it, offers no tools.
    if tools.is_empty() {
        return Ok(Answer::text("A title".to_owned()));
    }
    let result = turns.iter().skip(index).rev().find_map(|turn| match turn {
        Turn::Result(text) => Some(format!("tool said: {}", text.chars().take(60).collect::<String>())),
        _ => None,
    });
    let answered = match (reply, result) {
        (ModelReply::Run(_), Some(result)) => Ok(Answer::text(result)),
        (ModelReply::Run(command), None) => Ok(Answer::calling(ToolCall::shell(&tools, &command))),
        (ModelReply::Answer, _) => Ok(Answer::text(format!("answer {}", prompts(&turns, &state.replies)))),
        (ModelReply::Hold(text), _) => Ok(Answer { held: true, ..Answer::text(text) }),
        (ModelReply::Refuse(status), _) => Err(status),
    };
    state.asked.push(turns);
    answered
}

/// The reply to the prompt that was said last, and in which turn it was. An agent may put two prompts into one turn.
fn newest_prompt(turns: &[Turn], replies: &[(String, ModelReply)]) -> Option<(usize, ModelReply)> {
    let said = turns.iter().enumerate().filter_map(|(index, turn)| match turn {
        Turn::User(text) => Some((index, text)),
        _ => None,
    });
    let places = said.flat_map(|(index, text)| {
        replies.iter().filter_map(move |(prompt, reply)| Some(((index, text.rfind(prompt.as_str())?), reply)))
    });
    places.max_by_key(|(place, _)| *place).map(|((index, _), reply)| (index, reply.clone()))
}

/// How many of the test's prompts the conversation holds.
fn prompts(turns: &[Turn], replies: &[(String, ModelReply)]) -> usize {
    let holds =
        |prompt: &str| turns.iter().any(|turn| matches!(turn, Turn::User(text) if text.contains(prompt)));
    replies.iter().filter(|(prompt, _)| holds(prompt)).count()
}

/// The tools that agents run shell commands with.
const SHELLS: &[&str] =
    &["bash", "Bash", "exec_command", "run_shell_command", "shell", "Shell", "shell_command"];

impl ToolCall {
    /// A call of the shell among `tools`; every argument that it demands is given.
    fn shell(tools: &[Tool], command: &str) -> Self {
        let Some(tool) = tools.iter().find(|tool| SHELLS.contains(&tool.name.as_str())) else {
            panic!("no shell among {:?}", tools.iter().map(|tool| &tool.name).collect::<Vec<_>>())
        };
        let mut arguments = dialect::example(&tool.parameters);
        let name =
            ["cmd", "command"].into_iter().find(|name| !tool.parameters["properties"][*name].is_null());
        arguments[name.unwrap_or("command")] = command.into();
        // Else its agent would run the command in a sandbox without asking.
        if !tool.parameters["properties"]["sandbox_permissions"].is_null() {
            arguments["sandbox_permissions"] = "require_escalated".into();
            arguments["justification"] = "as the test says".into();
        }
        Self { name: tool.name.clone(), arguments }
    }
}
