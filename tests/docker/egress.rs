//! What a container reaches: everything where its network is open, what its list names where there is one, or nothing.

use abide_model::container::{EngineKind, Network};
use abide_model::ladder::Tier;
use abide_places::docker::egress::denials;
use abide_places::docker::egress::proxy::ProxyFiles;
use abide_places::docker::egress::write_rules;
use abide_places::place::TakeDown;
use abide_wire::instance_dir::InstanceDir;

use crate::contained::Contained;
use crate::life::Life;
use crate::outside::{METADATA, Neighbourhood, Outside, answer, serve_datagrams};
use crate::own_engine::with_own_engine;

on_each_engine! {
    every_way_out_of_an_open_network_is_closed_where_there_is_a_list_and_where_there_is_no_network,
    a_listed_host_is_reached_through_the_proxy_and_every_other_is_refused_and_logged,
    without_its_proxy_an_instance_reaches_nothing_until_it_is_resumed,
    each_way_down_takes_the_proxy_and_both_networks_along,
    a_host_that_was_refused_is_shown_and_can_be_allowed_while_the_instance_runs,
}

/// Prints the name of each way by which it reaches a server outside.
const PROBES: &str = r#"
import socket, struct, threading, time
LAN, METADATA, PORT = "@lan", "@metadata", @port
HELLO = b"GET / HTTP/1.0\r\n\r\n"
def tcp(address):
    with socket.create_connection((address, PORT), 8) as s:
        s.sendall(HELLO)
        return s.recv(1) == b"H"
def datagram(family, to, what, expected):
    for _ in range(4):
        try:
            with socket.socket(family, socket.SOCK_DGRAM) as s:
                s.settimeout(2)
                s.sendto(what, to)
                return expected in s.recvfrom(999)[0]
        except TimeoutError: pass
        # An address of IPv6 is of no use in the first second.
        except OSError: time.sleep(1)
def gateway():
    for line in list(open("/proc/net/route"))[1:]:
        words = line.split()
        if words[1] != "00000000":
            return socket.inet_ntoa(struct.pack("=I", int(words[1], 16) | 1 << 24))
    raise OSError("no network")
QUESTION = b"\0\7\1\0\0\1\0\0\0\0\0\0\4host\4test\0\0\1\0\1"
def neighbour():
    return datagram(socket.AF_INET6, ("ff02::1", PORT, 0, socket.if_nametoindex("eth0")), HELLO, b"hello")
ways = {
    "tcp": lambda: tcp(LAN),
    "metadata": lambda: tcp(METADATA),
    "gateway": lambda: tcp(gateway()),
    "udp": lambda: datagram(socket.AF_INET, (LAN, PORT), HELLO, b"hello"),
    "dns": lambda: datagram(socket.AF_INET, (LAN, 53), QUESTION, socket.inet_aton(LAN)),
    "names": lambda: socket.gethostbyname("host.test") == LAN,
    "ipv6": neighbour,
}
reached = []
def attempt(way):
    try:
        if ways[way](): reached.append(way)
    except OSError: pass
threads = [threading.Thread(target=attempt, args=[way]) for way in ways]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(*sorted(reached))
"#;

/// Prints what comes of a plain request to each of `hosts`, and of one through a tunnel: the answer, and the statuses.
const REQUESTS: &str = r#"
for host in @hosts; do
    echo "$host plain $(curl -sm20 -w ' %{http_code}' http://$host:@port/)"
    echo "$host tunnel $(curl -sm20 -w ' %{http_connect} %{http_code}' --proxytunnel http://$host:@port/)"
done
"#;

struct Probed {
    it: Contained,
    outside: Outside,
}

impl Probed {
    fn new(engine: EngineKind, network: Network) -> Self {
        let outside = Outside::new();
        let mut it = Contained::new(engine);
        let recipe = it.recipe();
        recipe.network = network;
        recipe.run_flags = vec![format!("--dns={}", outside.lan())];
        recipe.allowed_hosts =
            vec!["host.test".to_owned(), "*.below.test".to_owned(), "metadata.test".to_owned()];
        recipe.allowed_hosts.push(outside.lan());
        Self { it, outside }
    }

    /// What a script prints that knows where the proxy is, if there is one.
    fn sh(&self, script: &str, env: &[(String, String)]) -> String {
        let script = script
            .replace("@lan", &self.outside.lan())
            .replace("@metadata", METADATA)
            .replace("@port", &self.outside.port.to_string());
        let env: String = env.iter().map(|(name, value)| format!("export {name}='{value}'\n")).collect();
        self.it.sh(&format!("{env}{script}")).ok()
    }

    fn env(&self) -> Vec<(String, String)> {
        self.it.place.network_env(&self.it.instance).unwrap()
    }

    fn reached(&self) -> String {
        self.sh(&format!("python3 - <<'EOF'\n{PROBES}\nEOF"), &[])
    }

    fn requests(&self, hosts: &str) -> String {
        let said = self.sh(&REQUESTS.replace("@hosts", hosts), &self.env());
        said.replace(&self.outside.port.to_string(), "PORT")
    }

    fn proxy(&self) -> String {
        format!("{}-proxy", self.it.name())
    }

    fn log(&self) -> Vec<String> {
        let files = ProxyFiles::below(&InstanceDir::new(self.it.dir()).egress_dir());
        let last = denials::last(&files.log, 100);
        last.iter().map(|denial| format!("{}: {}", denial.host, denial.why)).collect()
    }
}

fn every_way_out_of_an_open_network_is_closed_where_there_is_a_list_and_where_there_is_no_network(
    engine: EngineKind,
) {
    let _metadata = Neighbourhood::metadata();
    let mut probed = Probed::new(engine, Network::Open);
    probed.it.up(Tier::Recreate);
    // Docker gives containers no IPv6 unless it is asked to.
    let ipv6 = if engine == EngineKind::Podman { " ipv6" } else { "" };
    assert_eq!(probed.reached(), format!("dns gateway{ipv6} metadata names tcp udp"));
    for network in [Network::Allow, Network::None] {
        probed.it.down(TakeDown::Remove);
        probed.it.recipe().network = network;
        probed.it.up(Tier::Recreate);
        assert_eq!(probed.reached(), "", "{network}");
    }
}

fn a_listed_host_is_reached_through_the_proxy_and_every_other_is_refused_and_logged(engine: EngineKind) {
    let mut probed = Probed::new(engine, Network::Allow);
    probed.it.up(Tier::Recreate);
    assert_eq!(
        probed.requests("host.test a.below.test"),
        "host.test plain hello Host: host.test:PORT 200\nhost.test tunnel hello Host: host.test:PORT 200 200\n\
         a.below.test plain hello Host: a.below.test:PORT 200\n\
         a.below.test tunnel hello Host: a.below.test:PORT 200 200"
    );
    assert_eq!(probed.log(), [""; 0]);
    let metadata = format!("its address {METADATA} is link-local");
    let not_listed = "it is not on the list";
    for (host, why) in [
        ("other.test", not_listed),
        ("below.test", not_listed),
        (METADATA, not_listed),
        ("metadata.test", &metadata),
    ] {
        let refused = format!("{host} plain abide: refused: {why}\n 403\n{host} tunnel  403 000");
        assert_eq!(probed.requests(host), refused);
        let logged = probed.log();
        let line = format!("{host}: {why}");
        assert_eq!(logged[logged.len() - 2..], [line.clone(), line]);
    }
    // What is added to the list counts at once.
    probed.it.recipe().allowed_hosts.push("other.test".to_owned());
    write_rules(&probed.it.dir(), probed.it.instance.recipe.container.as_ref().unwrap()).unwrap();
    assert!(probed.requests("other.test").contains("other.test tunnel hello"));
    let seen = probed.it.sh(&format!("ls '{}'", probed.it.dir().display())).ok();
    assert!(!seen.contains("egress"), "{seen}");
}

fn without_its_proxy_an_instance_reaches_nothing_until_it_is_resumed(engine: EngineKind) {
    let probed = Probed::new(engine, Network::Allow);
    probed.it.up(Tier::Recreate);
    let env = probed.env();
    probed.it.engine(&["kill", &probed.proxy()]);
    let said = probed.sh(&REQUESTS.replace("@hosts", "host.test"), &env);
    assert_eq!(said, "host.test plain  000\nhost.test tunnel  000 000");
    assert_eq!(probed.reached(), "");
    probed.it.down(TakeDown::Free);
    probed.it.up(Tier::Start);
    assert!(probed.requests("host.test").contains("host.test tunnel hello"));
    assert_eq!(probed.reached(), "");
}

fn each_way_down_takes_the_proxy_and_both_networks_along(engine: EngineKind) {
    let probed = Probed::new(engine, Network::Allow);
    let it = &probed.it;
    it.up(Tier::Recreate);
    let name = it.name();
    let all = ["Container NAME", "Container NAME-proxy", "Network NAME-net", "Network NAME-out"];
    let all = all.map(|text| text.replace("NAME", &name));
    assert_eq!(it.owned(), all);
    it.up(Tier::Reconnect);
    it.down(TakeDown::Stop);
    assert_eq!(it.owned(), all);
    it.up(Tier::Start);
    assert_eq!(it.owned(), all);
    it.down(TakeDown::Free);
    assert_eq!(it.owned(), all[..1]);
    it.up(Tier::Start);
    it.down(TakeDown::Remove);
    assert_eq!(it.owned(), [""; 0]);
}

fn a_host_that_was_refused_is_shown_and_can_be_allowed_while_the_instance_runs(engine: EngineKind) {
    let (outside, life) = (Outside::new(), Life::new(engine));
    let (lan, port) = (outside.lan(), outside.port);
    let config = life.sandbox.path("home/.config/abide/config.toml");
    let image = std::fs::read_to_string(&config).unwrap();
    let network = format!("network = \"allow\"\nallow = [\"{lan}\"]\nflags = [\"--dns={lan}\"]\n");
    std::fs::write(config, image + &network).unwrap();
    let id = life.load(&["sh"]);
    let ask = |file: &str| {
        life.type_line(&id, &format!("curl -sm20 http://other.test:{port}/ > {file}; echo >> {file}"));
        life.made(&id, file)
    };
    let refused = ask("before");
    assert!(refused.contains("it is not on the list"), "{refused}");
    for verb in ["allow", "explain"] {
        let said = life.sandbox.abide([verb, &id]).ok();
        assert!(said.contains(&format!("other.test:{port} was refused once")), "{said}");
        assert!(said.contains(&format!("`abide allow {id} other.test`")), "{said}");
    }
    assert!(life.sandbox.abide(["allow", &id, "not a host"]).fails(1).contains("is not a host"));
    let said = life.sandbox.abide(["allow", &id, "other.test"]).ok();
    assert_eq!(said.trim(), format!("ab-{id} may reach: {lan}, other.test"));
    assert!(ask("after").contains("hello"));
    life.sandbox.abide(["stop", &id]).ok();
    life.sandbox.abide(["resume", &id, "--detach"]).ok();
    assert!(ask("resumed").contains("hello"));
    life.sandbox.abide(["eject", &id, "--clean"]).ok();
    life.sandbox.abide(["trash", "empty", "--yes"]).ok();
    assert_eq!(life.census(), [""; 0]);
}

#[test]
fn a_privileged_engine_beside_a_container_with_a_list_is_refused() {
    let mut it = Contained::new(EngineKind::Docker);
    it.recipe().network = Network::Allow;
    it.recipe().sidecar = Some("any".to_owned());
    let refused = it.result_of_up(Tier::Recreate).unwrap_err().to_string();
    assert!(refused.contains("needs `network = \"open\"`"), "{refused}");
}

/// The engine of this machine looks names up at a loopback address, to which it goes itself.
#[test]
fn an_engine_that_looks_names_up_outside_does_not_for_an_instance_with_a_list() {
    let name = "egress::an_engine_that_looks_names_up_outside_does_not_for_an_instance_with_a_list";
    with_own_engine(name, |engine| {
        std::fs::write(engine.resolv_conf(), "nameserver 127.0.0.1\n").unwrap();
        engine.start(&[]);
        let (asked, questions) = std::sync::mpsc::channel();
        engine.serve("127.0.0.1:53", move |socket| {
            serve_datagrams(socket, |question| {
                asked.send(question.to_vec()).unwrap();
                answer(question, [9, 9, 9, 9].into())
            });
        });
        let image = engine.test_image();
        let mut it = Contained::from_image(EngineKind::Docker, &image);
        let look_up = "getent ahostsv4 secret.test || :";
        it.up(Tier::Recreate);
        assert!(it.sh(look_up).ok().starts_with("9.9.9.9"));
        assert!(questions.try_iter().count() > 0);
        it.down(TakeDown::Remove);
        it.recipe().network = Network::Allow;
        it.up(Tier::Recreate);
        assert_eq!(it.sh(look_up).ok(), "");
        assert_eq!(questions.try_iter().count(), 0);
    });
}
