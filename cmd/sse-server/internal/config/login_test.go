package config

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/clitest"
	"github.com/mcp-sse/mcp-sse/internal/login"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

func TestLoginNamesAServer(t *testing.T) {
	file := clitest.WriteFile(t, "gw.yaml", "servers: {docs: {url: \"https://docs.example.com/mcp\"}, own: {command: [x]}}\n")
	ofPersons := clitest.WriteFile(t, "gw.yaml", "servers: {notes: {url: \"https://notes.example.com/mcp\", login: per-principal}}\n")
	for name, c := range map[string]struct {
		args   []string
		server string // the URL that it means
		fails  string
	}{
		"a URL":                {args: []string{"login", "https://mcp.example.com/mcp"}, server: "https://mcp.example.com/mcp"},
		"a URL beside files":   {args: []string{"logout", "https://mcp.example.com/mcp", "-c", file}, server: "https://mcp.example.com/mcp"},
		"a name":               {args: []string{"login", "docs", "-c", file}, server: "https://docs.example.com/mcp"},
		"the only one":         {args: []string{"login", "-c", file}, server: "https://docs.example.com/mcp"},
		"--url":                {args: []string{"login", "--url", "https://mcp.example.com/mcp"}, server: "https://mcp.example.com/mcp"},
		"nothing":              {args: []string{"login"}, fails: "login: name the URL of the server, as in: sse-server login https://"},
		"a name without file":  {args: []string{"logout", "docs"}, fails: "logout: want the URL of the server"},
		"no https":             {args: []string{"login", "http://mcp.example.com/mcp"}, fails: "a login needs https"},
		"a command":            {args: []string{"login", "own", "-c", file}, fails: "there is no remote server"},
		"a URL without scheme": {args: []string{"login", "mcp.example.com/mcp?key=x"}, fails: "login: mcp.example.com/mcp is no URL: put https:// before it; for the name of a server add --config FILE"},
		"without scheme, here": {args: []string{"login", "localhost:8080/mcp"}, fails: "login: localhost:8080/mcp is no URL: put http:// before it"},
		"another scheme":       {args: []string{"login", "htp://mcp.example.com/mcp"}, fails: "login: unknown scheme htp: want https"},
		"two of them":          {args: []string{"login", "https://mcp.example.com/mcp", "extra"}, fails: "unexpected argument extra: login takes one URL or name"},
		"two URLs":             {args: []string{"logout", "https://mcp.example.com/mcp", "https://a"}, fails: "unexpected argument https://a: logout takes one URL or name"},
		"logins of one":        {args: []string{"logins", "https://a"}, fails: "unexpected argument https://a: logins takes none"},
		"an unknown name":      {args: []string{"login", "dogs", "-c", file}, fails: `no server or view is called "dogs"`},
		"login of each person": {args: []string{"login", "notes", "-c", ofPersons}, fails: "login: notes has login: per-principal: each person logs in by the link that their own client gets"},
		"logout of a person":   {args: []string{"logout", "notes", "-c", ofPersons}, server: "https://notes.example.com/mcp"},
		"client-id alone":      {args: []string{"login", "https://mcp.example.com/mcp", "--client-id", "x"}, fails: "--client-id: name the issuer too, with --issuer: a client id is sent only to an issuer that you name"},
	} {
		t.Run(name, func(t *testing.T) {
			loaded, err := Load(c.args, clitest.Environment(clitest.State(t)), new(Config))
			var s *Server
			if err == nil {
				s, err = loaded.LoginServer()
			}
			if c.fails != "" {
				ssetest.WantText(t, "error", err, c.fails)
				return
			}
			ssetest.Must(t, err)
			ssetest.Want(t, "server", s.Remote().Address, c.server)
		})
	}
}

// A login that is kept, and not used because of something else that is configured, is warned of.
func TestLoginThatIsNotUsedIsWarnedOf(t *testing.T) {
	env := clitest.State(t)
	const server = "https://mcp.example.com/mcp"
	store := login.NewStore(filepath.Join(env["XDG_STATE_HOME"], "sse-server"))
	kept := &login.Login{Server: server, Issuer: "https://issuer.example.com", Client: login.Client{ID: "c"}, Access: "x", At: time.Now()}
	ssetest.Must(t, store.Save(kept))
	tokens := clitest.WriteFile(t, "tokens", "alice:s3cret-0123456789-0123456789\n")
	file := clitest.WriteFile(t, "gw.yaml", "servers: {docs: {url: \""+server+"\", headers: {Authorization: Bearer y}}}\n")
	unused := ": somebody is logged in at " + server + ", and that is not used, as "
	for name, c := range map[string]struct{ args, want string }{
		"used":            {"--url " + server, ""},
		"another server":  {"--url https://other.example.com/mcp --header Authorization:y", ""},
		"off":             {"--url " + server + " --header Authorization:y --login off", ""},
		"shared":          {"--url " + server + " --auth-tokens-file " + tokens + " --login shared", ""},
		"stdio":           {"stdio --url " + server, ""},
		"the command":     {"login " + server, ""},
		"a header":        {"--url " + server + " --header Authorization:y", "--url" + unused + "--header has credentials for it: leave these out, or say that it is not meant with --login off"},
		"a header, stdio": {"stdio --url " + server + " --header Authorization:y", "--url" + unused + "--header has credentials"},
		"a client's":      {"--url " + server + " --forward-header Authorization", "--url" + unused + "--forward-header has credentials"},
		"a file":          {"-c " + file, unused},
		"tokens":          {"--url " + server + " --auth-tokens-file " + tokens, "--url" + unused + "with --auth-tokens-file clients may be those of others: let all of them use it with --login shared, or say"},
		"another address": {"--url " + server + " --addr :0 --insecure", "--url" + unused + "with --insecure clients may be"},
	} {
		t.Run(name, func(t *testing.T) {
			all := strings.Join(mustLoad(t, env, strings.Fields(c.args)...).Warnings, "\n")
			if c.want == "" {
				ssetest.Want(t, "a warning", strings.Contains(all, "logged in"), false)
				return
			}
			ssetest.WantText(t, "the warning", all, c.want)
		})
	}
	kept.Ended = time.Now()
	ssetest.Must(t, store.Save(kept))
	all := strings.Join(mustLoad(t, env, "--url", server, "--header", "Authorization:y").Warnings, "\n")
	ssetest.Want(t, "a warning of a login that has ended", strings.Contains(all, "logged in"), false)
}
