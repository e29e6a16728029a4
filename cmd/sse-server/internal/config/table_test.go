package config

import (
	"net/netip"
	"reflect"
	"testing"
	"time"

	"github.com/mcp-sse/mcp-sse/gateway"
)

type optionCase struct {
	flag, given string
	want        any
}

// optionCases name, for each field of gateway.Options, its flag and a value
// that is not the default.
func optionCases() map[string]optionCase {
	return map[string]optionCase{
		"Prefix":                {"prefix", "/mcp", "/mcp"},
		"TrustForwardedPrefix":  {"trust-forwarded-prefix", "true", true},
		"NoAutoInitialize":      {"auto-initialize", "false", true},
		"Quiet":                 {"announce", "false", true},
		"EventName":             {"event", "message", "message"},
		"Transports":            {"transports", "streamable", []string{"streamable"}},
		"RequireInitialize":     {"require-initialize", "true", true},
		"AdoptSessions":         {"adopt-sessions", "true", true},
		"SessionTimeout":        {"session-timeout", "0", time.Duration(-1)},
		"ResumeTime":            {"resume-time", "9s", 9 * time.Second},
		"ResumeBytes":           {"resume-bytes", "0", int64(-1)},
		"Capabilities":          {"capabilities", `{"roots":{}}`, `{"roots":{}}`},
		"ForwardHeaders":        {"forward-header", "X-User", []string{"X-User"}},
		"ErrorDetails":          {"error-details", "safe", "safe"},
		"Sessions":              {"sessions", "shared", "shared"},
		"SessionsSize":          {"sessions-size", "3", 3},
		"Warm":                  {"warm", "2", 2},
		"StartConcurrency":      {"start-concurrency", "3", 3},
		"Retry":                 {"retry", "never", "never"},
		"InitializationTimeout": {"initialization-timeout", "2s", 2 * time.Second},
		"StartTimeout":          {"start-timeout", "2m", 2 * time.Minute},
		"InitializeTimeout":     {"initialize-timeout", "9s", 9 * time.Second},
		"MaxHandshakeAttempts":  {"max-handshake-attempts", "3", 3},
		"HeartbeatInterval":     {"heartbeat-interval", "0", time.Duration(-1)},
		"ConnectionTimeout":     {"connection-timeout", "9s", 9 * time.Second},
		"RequestTimeout":        {"request-timeout", "9s", 9 * time.Second},
		"MaxRequestTimeout":     {"max-request-timeout", "9m", 9 * time.Minute},
		"HangTimeout":           {"hang-timeout", "0", time.Duration(-1)},
		"ReadTimeout":           {"read-timeout", "9s", 9 * time.Second},
		"WriteTimeout":          {"write-timeout", "9s", 9 * time.Second},
		"AnnounceDelay":         {"announce-delay", "0", time.Duration(-1)},
		"ReconnectDelay":        {"reconnect-delay", "9s", 9 * time.Second},
		"SlowRequest":           {"slow-request", "0", time.Duration(-1)},
		"MaxConnections":        {"max-connections", "0", -1},
		"MaxConnectionsPerIP":   {"max-connections-per-ip", "9", 9},
		"MaxSessions":           {"max-sessions", "0", -1},
		"ConnectRate":           {"connect-rate", "0", -1.0},
		"ConnectBurst":          {"connect-burst", "9", 9},
		"TrustedProxies": {"trusted-proxies", "10.0.0.0/8,::1,::ffff:192.0.2.1", []netip.Prefix{
			netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("::1/128"), netip.MustParsePrefix("192.0.2.1/32")}},
		"MaxHeldBytes":    {"max-held-bytes", "2GiB", int64(2 << 30)},
		"MaxMessageBytes": {"max-message-bytes", "9KiB", int64(9 << 10)},
		"OutboxBytes":     {"outbox-bytes", "9KiB", 9 << 10},
		"GateQueue":       {"gate-queue", "9", 9},
		"MaxInFlight":     {"max-in-flight", "9", 9},
		"MaxWaiting":      {"max-waiting", "9", 9},
		"MaxPending":      {"max-pending", "9", 9},
		"AllowedOrigins":  {"allowed-origins", "https://a", []string{"https://a"}},
		"AllowedHosts":    {"allowed-hosts", "a,[::1]", []string{"a", "::1"}},
		"CORS":            {"cors", "true", true},
	}
}

// TestEveryOptionHasAFlag fails when gateway.Options gains a field that no row of
// the table keeps.
func TestEveryOptionHasAFlag(t *testing.T) {
	notTheUsers := map[string]bool{"Logger": true, "Registry": true, "Authenticate": true, "Name": true,
		"SinglePath": true, "PassRequest": true, "RequestHeaders": true, "RequestContext": true} // for servers in process
	cases := optionCases()
	fields := reflect.TypeFor[gateway.Options]()
	defaults := mustLoad(t, nil)
	for i := range fields.NumField() {
		name := fields.Field(i).Name
		tc, ok := cases[name]
		if notTheUsers[name] || !ok {
			if !notTheUsers[name] {
				t.Errorf("gateway.Options.%s has no flag", name)
			}
			continue
		}
		if o := defaults.keeping(name); o == nil || o.name != tc.flag {
			t.Errorf("Options.%s is kept by %v, want --%s", name, o, tc.flag)
		}
		args := []string{"--" + tc.flag + "=" + tc.given}
		switch name { // what has an effect only with another
		case "CORS":
			args = append(args, "--allowed-origins=*")
		case "ForwardHeaders":
			args = append(args, "--url=https://a")
		case "SessionsSize":
			args = append(args, "--sessions=shared")
		}
		got := reflect.ValueOf(mustLoad(t, nil, args...).Options).Field(i).Interface()
		if name == "Capabilities" {
			tc.want = reflect.ValueOf(tc.want).Convert(fields.Field(i).Type).Interface()
		}
		if !reflect.DeepEqual(got, tc.want) {
			t.Errorf("--%s=%s: got Options.%s %v, want %v", tc.flag, tc.given, name, got, tc.want)
		}
		if reflect.DeepEqual(reflect.ValueOf(defaults.Options).Field(i).Interface(), got) {
			t.Errorf("Options.%s: the case uses the default %v", name, got)
		}
	}
	if len(cases)+len(notTheUsers) != fields.NumField() {
		t.Errorf("the cases name fields that gateway.Options does not have")
	}
}

// TestDefaultsAreTheGateways checks that a configuration without any option is that
// of a library's user who sets none. The numbers are in the test of gateway.Defaults.
func TestDefaultsAreTheGateways(t *testing.T) {
	got, want := mustLoad(t, nil).Options, gateway.Defaults()
	got.Logger, want.Logger = nil, nil
	want.Transports = []string{"sse", "streamable"} // a library's user who sets none gets both, but for SinglePath
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
}

// TestDefaultsAreTaken gives each option its default, which changes nothing.
func TestDefaultsAreTaken(t *testing.T) {
	for _, o := range mustLoad(t, nil).rows {
		given := o.defaultText()
		if given == "none" {
			continue
		}
		got, faults := loadWith(t, nil, "--"+o.name+"="+given)
		if len(faults) > 0 && o.isFor(Demo) || settingOf(got, o.name) != o.value.text() {
			t.Errorf("--%s=%s: got %s, faults %q", o.name, given, settingOf(got, o.name), faults)
		}
	}
}

// TestRowsAreWhole checks that each option is in the table once, and that each is
// kept in a field of its own.
func TestRowsAreWhole(t *testing.T) {
	names, targets := map[string]bool{}, map[any]string{}
	for _, o := range newConfig(nil).rows {
		if names[o.name] || targets[o.value.target] != "" {
			t.Errorf("--%s: its name or field is that of another option, %q", o.name, targets[o.value.target])
		}
		names[o.name], targets[o.value.target] = true, o.name
	}
}
