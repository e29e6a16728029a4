package main

import (
	"crypto/tls"
	"fmt"
	"slices"
	"strings"

	"github.com/mcp-sse/mcp-sse/gateway"
	"github.com/mcp-sse/mcp-sse/sse"
)

// validate returns the contradictions between options and what is wrong with
// the files that they name. Options that are faulty by themselves have been
// reported and are passed over.
func (l *loaded) validate() []string {
	var faults []string
	add := func(format string, args ...any) {
		// What is wrong with the options of all servers is told once.
		if fault := fmt.Sprintf(format, args...); !slices.Contains(faults, fault) {
			faults = append(faults, fault)
		}
	}
	l.checkTLS(add)
	l.checkTokens(add)
	l.checkExposure(add)
	if l.CORS.value && len(l.AllowedOrigins.values) == 0 && l.AllowedOrigins.want == "" {
		add("%s: has no effect without --allowed-origins", l.name("cors"))
	}
	if len(l.servers) > 0 {
		l.checkServers(add)
	}
	for _, s := range l.each() {
		s.checkUpstream(add)
		s.checkRelations(add)
		s.checkSessions(add)
		if s != l {
			l.warnings = append(l.warnings, s.warnings...)
		}
	}
	return faults
}

type addFault func(format string, args ...any)

// kind is what kind of server there is.
func (l *loaded) kind() string {
	switch {
	case len(l.command) > 0:
		return kindChild
	case l.URL.value != "":
		return kindRemote
	}
	return kindDemo
}

// checkUpstream refuses a server that is not one, or has options of another.
func (l *loaded) checkUpstream(add addFault) {
	const both = "want one of them, as both say what to serve"
	switch {
	case l.commandFaulty:
		return
	case len(l.command) > 0 && l.Demo.value:
		add("%s and the command %q: "+both, l.name("demo"), l.command[0])
	case len(l.command) > 0 && l.URL.value != "":
		add("%s and the command %q: "+both, l.name("url"), l.command[0])
	case l.URL.value != "" && l.Demo.value:
		add("%s and %s: "+both, l.name("url"), l.name("demo"))
	case len(l.command) > 0 && l.command[0] == "":
		add("command: the program's name after -- is empty")
	case l.server != "" && l.kind() == kindDemo && !l.Demo.value:
		add("%s: want what to serve: command, url or demo: true", l.origin[serversKey])
	default:
		l.checkKind(add)
	}
}

func (l *loaded) checkKind(add addFault) {
	kind := l.kind()
	for _, flag := range l.flags {
		switch {
		case isFor(flag, kind) || !l.given(flag.Name):
		case !isFor(flag, kindChild):
			add("%s: has no effect without --url", l.name(flag.Name))
		case kind == kindRemote:
			add("%s: has no effect on a remote server, which is not started here", l.name(flag.Name))
		default:
			add("%s: has no effect on the demo server, want a command after -- or in the file", l.name(flag.Name))
		}
	}
	if kind == kindRemote {
		l.checkRemote(add)
	}
}

func (l *loaded) checkTLS(add addFault) {
	cert, key := l.TLSCert.value, l.TLSKey.value
	switch {
	case cert == "" && key == "":
	case key == "":
		add("%s %q: needs --tls-key, the file of its key", l.name("tls-cert"), cert)
	case cert == "":
		add("%s %q: needs --tls-cert, the file of its certificate", l.name("tls-key"), key)
	default:
		if _, err := tls.LoadX509KeyPair(cert, key); err != nil {
			add("%s %q with %s %q: %v", l.name("tls-cert"), cert, l.name("tls-key"), key, err)
		}
	}
}

func (l *loaded) checkTokens(add addFault) {
	path := l.AuthTokensFile.value
	if path == "" {
		return
	}
	tokens, warnings, faults := readTokens(path)
	for _, fault := range faults {
		add("%s %q: %s", l.name("auth-tokens-file"), path, fault)
	}
	l.tokens, l.warnings = tokens, append(l.warnings, warnings...)
}

// exposed says whether others reach an address without authentication.
func (l *loaded) exposed(addr string) bool {
	return addr != "" && l.AuthTokensFile.value == "" && !sse.IsLoopback(addr)
}

// checkExposure refuses an exposed address, and with --insecure warns of it:
// whoever reaches it runs the tools of the server.
func (l *loaded) checkExposure(add addFault) {
	check := func(flag string, addr *text, open string) {
		if addr.want != "" || !l.exposed(addr.value) {
			return
		}
		if l.Insecure.value {
			l.warnings = append(l.warnings, fmt.Sprintf("%s %q without authentication: whoever reaches it can %s",
				l.name(flag), addr.value, open))
			return
		}
		add("%s %q: other machines may reach it; want a loopback address such as 127.0.0.1:8080, --auth-tokens-file, or --insecure to allow it",
			l.name(flag), addr.value)
	}
	check("addr", &l.Addr, "run the tools of the server")
	check("admin-addr", &l.AdminAddr, "read /metrics and /connections")
	if l.AdminAddr.value != "" && l.AdminAddr.value == l.Addr.value && !strings.HasSuffix(l.Addr.value, ":0") {
		add("%s %q: want another address than --addr", l.name("admin-addr"), l.AdminAddr.value)
	}
}

func (l *loaded) checkRelations(add addFault) {
	if _, given := l.origin["max-request-timeout"]; !given {
		l.MaxRequestTimeout.value = max(l.MaxRequestTimeout.value, l.RequestTimeout.value)
	}
	if l.InitializationTimeout.value > l.StartTimeout.value && l.StartTimeout.value > 0 {
		add("%s %v: want at most %s, which is %v", l.name("initialization-timeout"), &l.InitializationTimeout,
			l.name("start-timeout"), &l.StartTimeout)
	}
	if l.AnnounceDelay.value >= l.InitializationTimeout.value && l.InitializationTimeout.value > 0 {
		add("%s %v: want less than %s, which is %v", l.name("announce-delay"), &l.AnnounceDelay,
			l.name("initialization-timeout"), &l.InitializationTimeout)
	}
	if l.MaxRequestTimeout.value < l.RequestTimeout.value && l.MaxRequestTimeout.value > 0 {
		add("%s %v: want at least %s, which is %v", l.name("max-request-timeout"), &l.MaxRequestTimeout,
			l.name("request-timeout"), &l.RequestTimeout)
	}
	if most := l.MaxConnections.value; most > 0 && l.MaxConnectionsPerIP.value > most {
		add("%s %v: want at most %s, which is %d", l.name("max-connections-per-ip"), &l.MaxConnectionsPerIP,
			l.name("max-connections"), most)
	}
}

// checkSessions refuses what a mode of sessions cannot keep.
func (l *loaded) checkSessions(add addFault) {
	plain := !l.AutoInitialize.value && l.AutoInitialize.want == ""
	declares := l.Capabilities.want == "" && string(l.Capabilities.value) != "{}"
	shared := l.Sessions.want == "" && l.Sessions.value == gateway.SessionsShared
	if plain && declares {
		add("%s: has no effect with %s off, as only the gateway's own initialize declares them",
			l.name("capabilities"), l.name("auto-initialize"))
	}
	if l.kind() == kindRemote && !shared && l.Warm.value > 0 && (l.server == "" || l.given("warm")) {
		add("%s %v: has no effect on a remote server, which is not started here: leave it out, or want --sessions shared",
			l.name("warm"), &l.Warm)
	}
	if shared && plain {
		add("%s shared: needs %s on, as many clients cannot initialize one session",
			l.name("sessions"), l.name("auto-initialize"))
	}
	if shared && declares {
		add("%s: want {} with %s shared, as a request of the server could not be given to one client",
			l.name("capabilities"), l.name("sessions"))
	}
	if shared && len(l.ForwardHeader.values) > 0 {
		add("%s: has no effect with %s shared, as a session of all cannot have the headers of one",
			l.name("forward-header"), l.name("sessions"))
	}
	if !shared && l.given("sessions-size") && l.Sessions.want == "" && l.SessionsSize.value > 1 {
		add("%s %v: has no effect without --sessions shared", l.name("sessions-size"), &l.SessionsSize)
	}
}
