package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/clitest"
	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/exit"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// Ctrl-C at the question whether to log in at an issuer of another site ends the login, which nobody has answered.
func TestCtrlCAtTheQuestionOfALogin(t *testing.T) {
	issuer, at := newProtected(t), ""
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/mcp" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"resource": at, "authorization_servers": []string{issuer.URL}})
	}))
	defer server.Close()
	at = strings.Replace(server.URL, "127.0.0.1", "localhost", 1) + "/mcp"
	end, screen, keyboard := newKeyboard(t)
	signals, code := make(chan os.Signal), make(chan int, 1)
	m := &Main{
		Args:  []string{"login", at, "--no-browser"},
		Stdin: end, Stdout: end, Stderr: end, LookupEnv: clitest.Environment(clitest.State(t)),
		Notify: func(...os.Signal) <-chan os.Signal { return signals },
	}
	go func() { code <- m.Run() }() // ends with the signal
	screen.await(t, 1, "Log in there? [y/N]")
	signals <- syscall.SIGINT
	ssetest.Want(t, "exit code", <-code, exit.BySignal(syscall.SIGINT))
	screen.await(t, 1, "sse-server: the login was given up")
	ssetest.Want(t, "pages of the issuer that were opened", issuer.openings, 0)
	_, err := keyboard.WriteString("\n") // in a program of its own the end of that ends what reads the terminal
	ssetest.Must(t, err)
}
