package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// conformanceClientArg as the first argument makes the test binary the client that the conformance suite starts.
const conformanceClientArg = "conformance-client"

// conformanceClient is a client of stdio and its person. It starts sse-server stdio for a URL, and calls a tool there.
// The person logs in with a client of the issuer that the suite names, and runs the commands that answers name. The
// arguments are the program and the URL.
func conformanceClient(args []string) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	program, at := args[0], args[1]
	if err := logInWithNamedClient(ctx, program, at); err != nil {
		return err
	}
	server := exec.Command(program, "stdio", "--log-level", "debug", "--url", at)
	server.Stderr, server.SysProcAttr = os.Stderr, endsWithParent()
	session, err := mcp.NewClient(&mcp.Implementation{Name: "conformance", Version: "1"}, nil).Connect(
		ctx, &mcp.CommandTransport{Command: server}, nil)
	if err != nil {
		return err
	}
	defer session.Close()
	text := ""
	for range 3 { // a person gives up
		name, err := firstTool(ctx, session)
		if err != nil {
			return err
		}
		result, err := session.CallTool(ctx, &mcp.CallToolParams{Name: name})
		switch {
		case err != nil:
			text = err.Error()
		case name == conformanceTool && !result.IsError:
			return nil
		default:
			text = result.Content[0].(*mcp.TextContent).Text
		}
		fmt.Fprintf(os.Stderr, "%s: %s\n", name, text)
		if err := runCommandIn(ctx, program, text); err != nil {
			return err
		}
	}
	return errors.New(text)
}

// conformanceTool is the tool of the servers of the suite.
const conformanceTool = "test-tool"

// firstTool returns the tool of the suite, or, while nobody is logged in, the one that asks for that.
func firstTool(ctx context.Context, session *mcp.ClientSession) (string, error) {
	listed, err := session.ListTools(ctx, nil)
	if err != nil {
		return "", err
	}
	if len(listed.Tools) == 0 {
		return "", errors.New("there is no tool")
	}
	if slices.ContainsFunc(listed.Tools, func(tool *mcp.Tool) bool { return tool.Name == conformanceTool }) {
		return conformanceTool, nil
	}
	return listed.Tools[0].Name, nil
}

// conformanceDocument is the client id metadata document that the suite expects as the client id. Nobody hosts it.
const conformanceDocument = "https://conformance-test.local/client-metadata.json"

// logInWithNamedClient logs in with the client of the issuer that the suite names, if it names one, or expects.
func logInWithNamedClient(ctx context.Context, program, server string) error {
	if os.Getenv("MCP_CONFORMANCE_SCENARIO") == "auth/basic-cimd" {
		issuer, err := issuerOf(ctx, server)
		if err != nil {
			return err
		}
		return runForPerson(exec.CommandContext(ctx, program, "login", server, "--client-id", conformanceDocument,
			"--issuer", issuer))
	}
	var named struct {
		ID     string `json:"client_id"`
		Secret string `json:"client_secret"`
		Issuer string `json:"issuer"`
	}
	_ = json.Unmarshal([]byte(os.Getenv("MCP_CONFORMANCE_CONTEXT")), &named) // not set: none
	if named.Issuer == "" {
		return nil
	}
	secret := filepath.Join(os.Getenv("XDG_STATE_HOME"), "secret")
	if err := errors.Join(os.MkdirAll(filepath.Dir(secret), 0o700), os.WriteFile(secret, []byte(named.Secret), 0o600)); err != nil {
		return err
	}
	return runForPerson(exec.CommandContext(ctx, program, "login", server, "--client-id", named.ID, "--client-secret", secret,
		"--issuer", named.Issuer))
}

// issuerOf returns the issuer that a server of the suite names, as a person knows it who has a client for it.
func issuerOf(ctx context.Context, server string) (string, error) {
	at, err := url.Parse(server)
	if err != nil {
		return "", err
	}
	at.Path = "/.well-known/oauth-protected-resource" + at.Path
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
	if err != nil {
		return "", err
	}
	resp, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	var found struct {
		Issuers []string `json:"authorization_servers"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&found); err != nil || len(found.Issuers) == 0 {
		return "", fmt.Errorf("%s names no issuer: %w", at, err)
	}
	return found.Issuers[0], nil
}

// commandIn matches the command in an answer.
var commandIn = regexp.MustCompile(`run in a terminal: (sse-server login .+?)(?:$|;| and (?:then )?call again)`)

// runCommandIn runs the command that an answer names, if it names one.
func runCommandIn(ctx context.Context, program, answer string) error {
	found := commandIn.FindStringSubmatch(answer)
	if found == nil {
		return nil
	}
	cmd := exec.CommandContext(ctx, "sh", "-c", found[1])
	cmd.Env = append(os.Environ(), "PATH="+filepath.Dir(program)+":"+os.Getenv("PATH"))
	return runForPerson(cmd)
}

func runForPerson(cmd *exec.Cmd) error {
	printed, err := cmd.CombinedOutput()
	fmt.Fprintf(os.Stderr, "%s\n%s", strings.Join(cmd.Args, " "), printed)
	return err
}
