package exchange

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/details"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// The body of an unsuccessful response is plain text or a JSON-RPC error. It is the answer
// to its request, or ends the session.
func TestRefusedRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const rpc = `{"jsonrpc":"2.0", "error":{"code":-32000,"message":"m","data":9007199254740993,"x":1.0},"id":2}`
		const invalidSession = `{"jsonrpc":"2.0","error":{"code":-32000,"message":"Bad Request: No valid session ID provided"},"id":null}`
		inAnHour, before := time.Now().Add(time.Hour).UTC().Format(http.TimeFormat), time.Now().Add(-time.Hour).UTC().Format(http.TimeFormat)
		for _, tt := range []struct {
			code  int
			after string // the header Retry-After
			body  string
			want  string // part of the answer, or of the reason why the session is over
		}{
			{400, "", "JSON RPC not handled: \"x/y\" unsupported\n", `"code":-32601,"message":"the server does not know the method"`},
			{400, "", "invalid request: missing required \"params\"\n", `"code":-32600,"message":"invalid request: missing`},
			{400, "", "no such thing\nmore", `"code":-32603,"message":"the server refused the request (400 Bad Request): no such thing","data":{"reason":"request_refused","retryable":false,"status":400}`},
			{405, "", "<html>secret</html>", `"the server refused the request (405 Method Not Allowed)"`},
			{400, "", rpc, rpc},
			{500, "", rpc, rpc},
			{400, "", strings.Replace(rpc, `"id":2`, `"id":null`, 1), rpc},
			{400, "", strings.Replace(rpc, `,"id":2`, ``, 1), `{"id":2,"jsonrpc":"2.0", "error":{"code":-32000,"message":"m","data":9007199254740993,"x":1.0}}`},
			{404, "", strings.Replace(rpc, "-32000", "-32601", 1), `"code":-32601,"message":"m"`},
			{400, "", `{"jsonrpc":"2.0","id":2,"error":{"code":-32602,"message":"no such session"}}`, "no such session"}, // of a tool
			{401, "", "secret", `the server refused access (401 Unauthorized): configure the credentials that it wants, for example as an Authorization header","data":{"reason":"unauthorized"`},
			{403, "", rpc, "the server refused access (403 Forbidden)"},
			{302, "", "", "the server redirects elsewhere (302 Found)"},
			{429, "", "", `the server takes no more requests now (429 Too Many Requests)","data":{"reason":"rate_limited","retryable":true,"status":429}`},
			{429, "soon", "", `"retryable":true,"status":429}`},
			{503, "2", "", `"retryable":true,"status":503,"retryAfterMs":2000}`},
			{503, "0", "", `"retryAfterMs":1}`},
			{429, inAnHour, "", `"retryAfterMs":3600000}`},
			{429, before, "", `"retryAfterMs":1}`},
			{404, "", `{"jsonrpc":"2.0","error":{"code":-32001,"message":"Session not found"},"id":2}`, "over: the server has forgotten the session"},
			// After a restart some servers answer 400: server-everything and what was made
			// after the same example, and older ones of the Python SDK.
			{400, "", invalidSession, "over: the server has forgotten the session"},
			{400, "", strings.Replace(invalidSession, "null", "2", 1), "over: the server has forgotten the session"},
			{400, "", "Invalid or missing session ID\n", "over: the server has forgotten the session"},
			{400, "", `{"jsonrpc":"2.0","error":{"code":-32000,"message":"Bad Request: Server not initialized"},"id":null}`, "over: the server has forgotten the session"},
			{410, "", "", "over: the server has forgotten the session"},
			// JSON that is no JSON-RPC, and JSON-RPC with other codes, of frameworks and gateways.
			{400, "", `{"error":"Invalid or missing session ID"}`, "over: the server has forgotten the session"},
			{401, "", `{"error":"Invalid or expired session"}`, "over: the server has forgotten the session"},
			{400, "", `{"detail":"Session not found"}`, "over: the server has forgotten the session"},
			{503, "", `{"message":"unknown SESSION"}`, "over: the server has forgotten the session"},
			{401, "", `{"error":"unauthorized","error_description":"no such session"}`, "over: the server has forgotten the session"},
			{400, "", `{"error":{"code":"bad_session","message":"The session is gone"}}`, "over: the server has forgotten the session"},
			{400, "", `{"error":{"message":"Server not initialized"},"jsonrpc":"2.0"}`, "over: the server has forgotten the session"},
			{401, "", `{"jsonrpc":"2.0","id":2,"error":{"code":-32603,"message":"Invalid or expired session"}}`, "over: the server has forgotten the session"},
			{401, "", `{"jsonrpc":"2.0","id":null,"error":{"code":401,"message":"Invalid or expired session"}}`, "over: the server has forgotten the session"},
			{400, "", `{"jsonrpc":"2.0","id":null,"error":{"code":-32603,"message":"Session not found"}}`, "over: the server has forgotten the session"},
			{400, "", `{"jsonrpc":"2.0","error":{"code":-32602,"message":"Invalid session ID"}}`, "over: the server has forgotten the session"},
			{400, "", `{"jsonrpc":"2.0","id":2,"error":{"code":-32603,"message":"no such session"}}`, `"code":-32603,"message":"no such session"`},
			{401, "", `{"error":"invalid_token","error_description":"The token has expired"}`, "the server refused access (401 Unauthorized)"},
			{401, "", `{"jsonrpc":"2.0","id":2,"error":{"code":-32603,"message":"Invalid token"}}`, "the server refused access (401 Unauthorized)"},
			{403, "", `{"error":"Invalid session"}`, "the server refused access (403 Forbidden)"},
			{400, "", `{"error":"bad","session":"1"}`, "the server refused the request (400 Bad Request)"},
			{400, "", `{"error":["session"],"data":{"message":"session"}}`, "the server refused the request (400 Bad Request)"},
			{400, "", `{"error":"Invalid session`, "the server refused the request (400 Bad Request)"},
			{400, "", `<html>Invalid session`, "the server refused the request (400 Bad Request)"},
			{401, "", "Invalid or expired session", "over: the server has forgotten the session"},
			{503, "", "no such session here", "over: the server has forgotten the session"},
			{502, "", "<html>", `the server failed (502 Bad Gateway)","data":{"reason":"request_refused","retryable":false,"status":502}`},
			{524, "", "", `the server failed (524)`},
			// A reason in any form.
			{400, "", `{"error":"API key missing"}`, `the server refused the request (400 Bad Request): API key missing"`},
			{400, "", `{"statusCode":400,"message":"API key missing","error":"Bad Request"}`, `(400 Bad Request): Bad Request: API key missing"`},
			{400, "", `{"error":{"code":"x","message":"API key missing"}}`, `(400 Bad Request): API key missing"`},
			{422, "", `{"detail":[{"loc":["body","name",0],"msg":"Field required","type":"missing"},{"msg":"another"}]}`, `(422 Unprocessable Entity): body.name.0 Field required: another"`},
			{400, "", `{"error":"invalid_request","error_description":"no\nscope"}`, `(400 Bad Request): invalid_request: no scope"`},
			{400, "", `{"errors":["a","b"]}`, `(400 Bad Request): a: b"`},
			{409, "", `{"title":"Conflict here","status":409}`, `(409 Conflict): Conflict here"`},
			{400, "", `{"reason": {"x":1}}`, `(400 Bad Request): {\"reason\":{\"x\":1}}"`},
			{400, "", `["no"]`, `(400 Bad Request): [\"no\"]"`},
			{400, "", `{"message":"` + strings.Repeat("x", 300) + `"}`, strings.Repeat("x", 200) + `…"`},
			{500, "", `{"detail":"out of disk"}`, `the server failed (500 Internal Server Error): out of disk"`},
			{500, "", "panic: nil map", `the server failed (500 Internal Server Error): panic: nil map"`},
			{429, "", `{"message":"100 calls a day"}`, `the server takes no more requests now (429 Too Many Requests): 100 calls a day"`},
			{401, "", `{"error":"invalid_token","error_description":"The token has expired"}`, `as an Authorization header; it says: invalid_token: The token has expired"`},
			{403, "", `{"reason":"secret"}`, `as an Authorization header"`},
			{400, "", `{"message":"no such key: hunter2hunter2"}`, `no such key: ***"`},
			{503, "", "", `"retryable":true,"status":503}`},
		} {
			if got := refusal(tt.code, tt.after, tt.body, true); !strings.Contains(got, tt.want) || strings.Contains(got, "secret") {
				t.Errorf("%d %s: got %s, want %s", tt.code, tt.body, got, tt.want)
			}
		}
		ssetest.WantText(t, "without a session", refusal(404, "", "", false), `"the server refused the request (404 Not Found)"`)
		ssetest.WantText(t, "without a session", refusal(401, "", `{"error":"no session"}`, false), "the server refused access (401 Unauthorized)")
	})
}

// No refusal tells what the gateway has sent, however the server quotes it, nor has control characters.
func TestRefusalQuotesNoSecret(t *testing.T) {
	for name, body := range map[string]string{
		"text": `no %s`, "message": `{"message":"no %s"}`, "list": `{"errors":["no %s"]}`, "other JSON": `{"why":"no %s"}`,
		"JSON-RPC":      `{"jsonrpc":"2.0","id":2,"error":{"code":1,"message":"no","data":{"%s":["no %[1]s"]}}}`,
		"no id":         `{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"no %s"}}`,
		"at the bound":  `{"message":"` + strings.Repeat("x", 196) + `%s"}`,
		"with controls": `{"message":"\u001b[2Jno` + "\u202e" + `%s"}`,
	} {
		for _, secret := range []string{"hunter2hunter2", "pw-4", "alice", "k/ey", "k%%2Fey", "custom value", "crumb", "oauth-token", "a-long-part-of-the-path", "abcd=="} {
			secret = strings.ReplaceAll(secret, "%%", "%")
			escaped := ""
			for _, r := range secret {
				escaped += fmt.Sprintf("\\u%04x", r)
			}
			for _, quoted := range []string{secret, escaped} {
				resp := response("application/json", fmt.Sprintf(body, quoted))
				resp.StatusCode = 400
				resp.Request = &http.Request{Header: http.Header{"Authorization": {"Bearer oauth-token"}}}
				var log bytes.Buffer
				r := Reader{Endpoint: testEndpoint("https://x:pw-4@h/a-long-part-of-the-path/mcp?key=k%2Fey&n=2"), ID: "2"}
				r.Endpoint.Log = slog.New(slog.NewJSONHandler(&log, nil))
				r.Endpoint.Header = http.Header{"X-Api-Key": {"hunter2hunter2"}, "X-Other": {"custom value"}, "Cookie": {"a=crumb; b=abcd=="},
					"Authorization": {"Basic " + base64.StdEncoding.EncodeToString([]byte("alice:pw-4"))}}
				m, err := r.Read(resp)
				var e *jsonrpc.Error
				got := log.String()
				if m != nil {
					got += string(m.Raw())
				} else if errors.As(err, &e) {
					got += e.Message
				}
				if name == "text" && quoted == escaped && secret != escaped {
					continue // text has no escapes
				}
				if got == "" || strings.Contains(got, secret) || strings.Contains(got, escaped) || name == "at the bound" && strings.Contains(got, "x"+secret[:2]) {
					t.Errorf("%s, %q: got %s", name, quoted, got)
				}
				if name == "with controls" && strings.ContainsAny(e.Message, "\x1b\u202e") {
					t.Errorf("%q has control characters", e.Message)
				}
			}
		}
	}
}

// A plain word, the name of a scheme, and what a transport sends are no secrets.
func TestRefusalKeepsPlainWords(t *testing.T) {
	const said = "Bearer, not application/json: 2 no"
	resp := response("text/plain", said)
	resp.StatusCode = 400
	resp.Request = &http.Request{Header: http.Header{"Authorization": {"Bearer oauth-token"}, "Content-Type": {"application/json"}, "X-N": {"2"}}}
	_, err := (&Reader{Endpoint: testEndpoint("http://h/mcp?v=no"), ID: "2"}).Read(resp)
	e, _ := errors.AsType[*jsonrpc.Error](err)
	_, full, _ := details.Split(jsonrpc.NewError("2", e))
	ssetest.WantText(t, "the error", string(full), said)
}

// The words of a server are in the details of an error: a client that may not see them gets the status alone.
func TestReasonIsInTheDetailsOfAnError(t *testing.T) {
	for _, body := range []string{`{"message":"inner words"}`, `{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"inner words"}}`, "inner words"} {
		for _, code := range []int{400, 401, 403, 404, 409, 422, 429, 500, 502, 503} {
			resp := response("application/json", body)
			resp.StatusCode = code
			var log bytes.Buffer
			r := Reader{Endpoint: testEndpoint(""), ID: "2"}
			r.Endpoint.Log = slog.New(slog.NewTextHandler(&log, nil))
			m, err := r.Read(resp)
			if m != nil { // its own JSON-RPC error
				continue
			}
			e, _ := errors.AsType[*jsonrpc.Error](err)
			if e == nil {
				t.Errorf("%d: got %v", code, err)
				continue
			}
			plain, full, ok := details.Split(jsonrpc.NewError("2", e))
			if code != 401 && code != 403 || strings.HasPrefix(body, "{") { // else it may be anything
				ssetest.Want(t, "has details", ok, true)
				ssetest.WantText(t, "with details", string(full), "inner words", strconv.Itoa(code))
				ssetest.WantText(t, "the log", log.String(), "inner words")
			}
			if strings.Contains(string(plain), "inner words") || strings.Contains(string(plain)+string(full), "details") {
				t.Errorf("%d: plain %s, full %s", code, plain, full)
			}
		}
	}
}

// The client alone gets the link of a login: a reader of the log could end the login in place of the person.
func TestLinkOfALoginIsNotInTheLog(t *testing.T) {
	const link = "https://issuer/authorize?state=S"
	var log bytes.Buffer
	e := testEndpoint("")
	e.Log = slog.New(slog.NewTextHandler(&log, nil))
	resp := response("", "")
	resp.StatusCode = 401
	resp.Body = e.advised(resp, "Log in at "+link, "Log in at "+link, link)
	_, err := (&Reader{Endpoint: e, ID: "2"}).Read(resp)
	ssetest.WantText(t, "the error", err, link)
	ssetest.WantText(t, "the log", log.String(), "server refused a request", "the client was told where to log in")
	if strings.Contains(log.String(), "state=S") {
		t.Errorf("the log has the link:\n%s", log.String())
	}
}

// refusal returns the answer to a request that got an unsuccessful response, or why the
// session is over.
func refusal(code int, after, body string, session bool) string {
	resp := response("text/plain", body)
	resp.StatusCode = code
	resp.Header.Set("Retry-After", after)
	r := Reader{Endpoint: testEndpoint(""), ID: "2", HasSession: session}
	r.Endpoint.Header = http.Header{"Authorization": {"Bearer hunter2hunter2"}}
	m, err := r.Read(resp)
	if m != nil {
		return string(m.Raw())
	}
	if e, ok := errors.AsType[*jsonrpc.Error](err); ok {
		answer := jsonrpc.NewError("2", e)
		if _, full, ok := details.Split(answer); ok {
			answer = full
		}
		return string(answer)
	}
	return "over: " + err.Error()
}

// FuzzRefused checks that any unsuccessful response is either an answer with the id of
// the request, on one line, or the end of the session.
func FuzzRefused(f *testing.F) {
	for _, body := range []string{"", "JSON RPC not handled: x", `{"jsonrpc":"2.0","id":2,"error":{}}`, "{\"jsonrpc\":\"2.0\",\n\"error\":{\"code\":1,\"message\":\"m\"}}", "<", strings.Repeat("é", 300)} {
		for _, code := range []uint16{300, 400, 401, 404, 429, 500, 503} {
			f.Add(code, "5", body, true)
			f.Add(code, "", body, false)
		}
	}
	f.Fuzz(func(t *testing.T, code uint16, after, body string, session bool) {
		if code < 300 || code > 999 {
			return
		}
		got := refusal(int(code), after, body, session)
		if strings.HasPrefix(got, "over: ") {
			return
		}
		if m, err := jsonrpc.Parse([]byte(got)); err != nil || m.Kind != jsonrpc.Response || m.ID != "2" || strings.ContainsAny(got, "\r\n") {
			t.Errorf("answer %q: %v", got, err)
		}
	})
}
