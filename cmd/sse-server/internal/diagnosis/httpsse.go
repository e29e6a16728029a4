package diagnosis

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// open opens a stream of HTTP+SSE, and waits for its event endpoint. A server that serves Streamable HTTP
// needs none: then a stream without an event is that of such a server (mcp-go has one), unless something was
// found to hold events back.
func (r *run) open(ctx context.Context) (string, error) {
	if !r.worked(streamableCall) {
		return r.openWithin(ctx, r.Patience)
	}
	ctx, cancel := context.WithTimeout(ctx, r.Grace)
	defer cancel()
	detail, err := r.openWithin(ctx, r.Grace)
	if err != nil && ctx.Err() != nil && r.results[streamableGET] != Failed {
		err = missing("the stream has no event endpoint")
	}
	return detail, err
}

func (r *run) openWithin(ctx context.Context, patience time.Duration) (string, error) {
	if err := r.openSSE(ctx, &r.sse, patience); err != nil {
		return "", err
	}
	return "POST to " + r.sse.endpoint, nil
}

// sseStream is a stream of HTTP+SSE, whose end is that of its session.
type sseStream struct {
	*events               // from its endpoint on
	endpoint string       // where messages of the client are posted
	session  *openSession // from initialize, or the announcement, on
}

func (s *sseStream) close() {
	if s.events != nil {
		s.events.close()
	}
}

// openSSE opens a stream, and waits for its endpoint.
func (r *run) openSSE(ctx context.Context, s *sseStream, patience time.Duration) error {
	response, cancel, err := r.openStream(ctx, map[string]string{"Accept": "text/event-stream"})
	switch {
	case err != nil && ctx.Err() != nil:
		return &fault{fmt.Sprintf("no event came in %v", patience), buffers}
	case err != nil:
		return err
	}
	stream := newEvents(response.Body, cancel)
	if s.endpoint, err = r.endpointOf(ctx, response, stream, patience); err != nil {
		stream.close()
		return err
	}
	s.events = stream
	life, endpoint := response.Request.Context(), s.endpoint
	stream.reply(func(body []byte) { r.post(life, endpoint, body, nil) })
	return nil
}

// openStream sends a GET whose response outlives ctx, which bounds the time to its head. The caller must
// call cancel.
func (r *run) openStream(
	ctx context.Context, header map[string]string,
) (response *http.Response, cancel context.CancelFunc, err error) {
	life, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, cancel)
	response, err = r.send(life, http.MethodGet, r.URL, "", header)
	if !stop() {
		if err == nil {
			response.Body.Close()
		}
		err = ctx.Err() // and not that of life
	}
	if err != nil {
		cancel()
		return nil, nil, err
	}
	return response, cancel, nil
}

// endpointOf returns the URL that the first event of a stream names.
func (r *run) endpointOf(
	ctx context.Context, response *http.Response, stream *events, patience time.Duration,
) (string, error) {
	if kind := response.Header.Get("Content-Type"); response.StatusCode != http.StatusOK ||
		!strings.HasPrefix(kind, "text/event-stream") {
		noStream := missing(strings.TrimSuffix(fmt.Sprintf("HTTP %d, %s", response.StatusCode, kind), ", "))
		switch response.StatusCode {
		case http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusBadRequest, http.StatusNotAcceptable,
			http.StatusOK:
			return "", noStream
		}
		if err := r.refused(response); err != nil {
			return "", err
		}
		return "", noStream
	}
	first, err := stream.next(ctx)
	switch {
	case isFault(err):
		return "", err
	case err != nil && ctx.Err() != nil && stream.hasCome():
		return "", missing("the stream has no event endpoint")
	case err != nil && ctx.Err() != nil:
		return "", &fault{fmt.Sprintf("the stream is open, but no event came in %v", patience), buffers}
	case err != nil:
		return "", &fault{"the stream ended before its first event", "see the log of the server"}
	case first.name != "endpoint":
		return "", missing("the stream does not begin with the event endpoint")
	}
	to, err := url.Parse(strings.TrimSpace(first.data))
	if err != nil {
		return "", &fault{"the event endpoint has no URL", "see the server"}
	}
	to = r.at.ResolveReference(to)
	switch { // before anything is sent there, which would have the user's token
	case to.Scheme != r.at.Scheme && strings.EqualFold(to.Hostname(), r.at.Hostname()):
		return "", &fault{"the event endpoint names " + to.Scheme + "://" + to.Host + ", and the stream is at " +
			r.at.Scheme + "://" + r.at.Host + ": clients do not post to another scheme",
			"have the proxy send X-Forwarded-Proto, and the server use it"}
	case to.Scheme != r.at.Scheme || addressOf(to) != r.address():
		return "", &fault{"the event endpoint names another host, " + to.Host + ", where clients do not post",
			"have the proxy pass Host, and the server use it"}
	}
	return to.String(), nil
}

func (r *run) initializeOverSSE(ctx context.Context) (string, error) {
	answer, err := r.over(ctx, &r.sse, initialize, "1")
	if err != nil {
		return "", err
	}
	return r.sse.begin(answer)
}

// begin takes the answer to initialize, whoever has sent that.
func (s *sseStream) begin(answer []byte) (string, error) {
	begun := new(openSession)
	if err := begun.read(answer); err != nil {
		return "", err
	}
	s.session = begun
	return begun.what, nil
}

func (r *run) callOverSSE(ctx context.Context) (string, error) {
	r.post(ctx, r.sse.endpoint, []byte(initialized), nil)
	return r.callOver(ctx, &r.sse)
}

func (r *run) callOver(ctx context.Context, s *sseStream) (string, error) {
	answer, err := r.over(ctx, s, s.session.call("2"), "2")
	if err != nil {
		return "", err
	}
	return called(answer)
}

// await opens another stream, sends nothing, and waits for the gateway to announce the session that it has
// initialized. Others are not asked: some take one client alone.
func (r *run) await(ctx context.Context) (string, error) {
	if !r.sse.promised.Load() {
		return "", missing("the server initializes no session by itself: each client has to")
	}
	r.sse.close()
	if err := r.openSSE(ctx, &r.announced, r.Patience); err != nil {
		return "", err
	}
	for {
		e, err := r.announced.next(ctx)
		switch {
		case isFault(err):
			return "", err
		case err != nil && ctx.Err() != nil:
			return "", &fault{fmt.Sprintf("the gateway announced no session in %v", r.Patience),
				"see with sse-server check --start and the options of that gateway how long the server takes to " +
					"start, or see the log of the gateway"}
		case err != nil:
			return "", &fault{"the stream ended before the announcement", "see the log of the gateway"}
		case e.name == "mcp-response":
			return r.announced.begin([]byte(e.data))
		}
	}
}

// callAnnounced makes a call as a client does that never sends initialize.
func (r *run) callAnnounced(ctx context.Context) (string, error) {
	return r.callOver(ctx, &r.announced)
}

// over posts a message, and returns the answer that comes on the stream.
func (r *run) over(ctx context.Context, s *sseStream, message string, id jsonrpc.ID) ([]byte, error) {
	response, err := r.send(ctx, http.MethodPost, s.endpoint, message, nil)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode == http.StatusNotFound {
		return nil, &fault{"HTTP 404 at the URL of the event endpoint: " + r.excerpt(response.Body),
			"behind a proxy that strips a prefix, have it send X-Forwarded-Prefix, or set prefix; " +
				"several servers behind one address need one cluster: --nats"}
	}
	if err := r.refused(response); err != nil {
		return nil, err
	}
	body, err := readAll(response.Body)
	if err != nil {
		return nil, err
	}
	if answer := answerTo(id, body); answer != nil { // some answer in the POST
		return answer, nil
	}
	for {
		e, err := s.next(ctx)
		switch {
		case isFault(err):
			return nil, err
		case err != nil && ctx.Err() != nil:
			return nil, &fault{fmt.Sprintf("the POST was taken, but no answer came on the stream in %v", r.Patience),
				buffers}
		case err != nil:
			return nil, &fault{"the stream has ended", "see the log of the server, and whether a proxy cuts streams"}
		}
		if answer := answerTo(id, []byte(e.data)); answer != nil {
			return answer, nil
		}
	}
}

func (r *run) isToWait() bool { return r.Wait > 0 }

// waitOverSSE leaves the stream silent. Its end is that of the session.
func (r *run) waitOverSSE(ctx context.Context) (string, error) {
	if !r.worked(sseCall) {
		return "", noCall
	}
	after, cut, err := r.silence(ctx, r.sse.events)
	switch {
	case err != nil:
		return "", err
	case cut:
		return "", cutOff(after, r.sse.events)
	}
	return stayed(r.Wait, r.sse.events), nil
}

// silence sends nothing for a while, and looks whether the stream stays, or after what time it was cut.
func (r *run) silence(ctx context.Context, stream *events) (after time.Duration, cut bool, err error) {
	wait, cancel := context.WithTimeout(ctx, r.Wait)
	defer cancel()
	began := time.Now()
	for err == nil {
		_, err = stream.next(wait)
	}
	switch {
	case isFault(err):
		return 0, false, err
	case ctx.Err() != nil:
		return 0, false, ctx.Err()
	case wait.Err() != nil:
		return 0, false, nil
	}
	return time.Since(began), true, nil
}

func stayed(wait time.Duration, stream *events) string {
	return fmt.Sprintf("it stayed open for %v, with %d heartbeats", wait, stream.beats.Load())
}

func cutOff(after time.Duration, stream *events) error {
	return &fault{fmt.Sprintf("it was cut after %.0f s, with %d heartbeats before", after.Seconds(),
		stream.beats.Load()),
		"raise the idle timeout of the proxy, in nginx proxy_read_timeout, or send heartbeats more often: " +
			"--heartbeat-interval"}
}
