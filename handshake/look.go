package handshake

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/mcp"
	"github.com/mcp-sse/mcp-sse/internal/rawjson"
	"github.com/mcp-sse/mcp-sse/internal/remember"
)

// lookAt prepares the look at a session that nobody has yet.
func (s *Session) lookAt(memory *remember.Server) {
	s.look.memory, s.look.done, s.look.state = memory, make(chan struct{}), lookDue
	s.looked = s.look.done
}

// lookState returns how far the look has come.
func (s *Session) lookState() lookState {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.look.state
}

// CanLook reports whether there is or will be a look at the session, which shows what its server says: something is
// remembered of the server.
func (s *Session) CanLook() bool { return s.look.memory != nil }

// StartLook reads the lists of an initialized session in the background, once, and remembers them for
// clients that declare the same. The channel is closed at the end. The caller must know that CanLook is true.
func (s *Session) StartLook() (done <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.look.state == lookDue {
		s.look.state = lookRunning
		s.source.Go(s.runLook) // ends with the session, and after a request timeout
	}
	return s.look.done
}

// Looked returns what the look has shown, which the caller must not change. It returns nil while that is not over, or
// if the lists could not be read.
func (s *Session) Looked() *remember.Answers {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.look.answers
}

// endLook ends a look, which has shown answers; nil: nothing. It tells the users before it closes done: who waits for
// that finds what they did.
func (s *Session) endLook(answers *remember.Answers) {
	s.mu.Lock()
	s.look.state, s.look.answers = lookRead, answers // those who observe from now on are told by Observe
	if answers == nil {
		s.look.state = lookUnread
	}
	all := slices.Collect(maps.Keys(s.users))
	s.mu.Unlock()
	for _, u := range all {
		u.SessionLooked()
	}
	close(s.look.done)
}

// runLook reads all lists of the server, and remembers them if they are whole. An error only means that nothing is
// remembered: the session goes on. Answers without ids could be those of a client's requests, so they do not count.
func (s *Session) runLook() {
	answers, err := s.readLists(s.Result(), s.client)
	switch {
	case err != nil:
		if !s.isOver() {
			s.source.limited.Warn("the server's lists could not be read, and are not remembered", "err", err)
		}
		answers = nil
	case !s.NamesAnswers():
		answers = nil
	default:
		s.learn(answers)
	}
	s.endLook(answers)
}

// learn remembers the answers of the server for all clients. Once the server has heard from a client, its answers
// may be for that client alone, such as resources that a call has made, or lists that follow from its roots: no
// other client is told of them. If something else has been remembered for long, or nothing because the server
// asks each client something at once, a session without a client shows what the server says to all.
func (s *Session) learn(answers *remember.Answers) {
	if !s.teaches {
		return
	}
	if s.reached() < heardClient {
		s.remember(s.client, answers)
		return
	}
	if !s.source.LearnsAlone() {
		return
	}
	known := s.look.memory.Answers(s.client)
	differs := known == nil && s.reached() < mayHaveChanged ||
		known != nil && !known.Same(answers) && time.Since(known.Learned) > time.Hour
	if differs {
		s.source.tellObserver(func(o observer) { o.memoryDiffers(s.client, s.Params(), s.who) })
	}
}

// remember keeps what the server says to such a client, and tells those who have something else, or wait.
func (s *Session) remember(client remember.Client, answers *remember.Answers) {
	if s.look.memory.Learn(client, answers) {
		s.source.tellObserver(observer.memoryHasNews)
	}
}

// lookEnds bounds how long a session whose client has left goes on for a look that has begun: many
// clients list the tools and leave.
const lookEnds = 5 * time.Second

// CloseAfterLook closes the session once its look is over, if a look has begun. It begins one if the client has only
// initialized, because then nobody else gets an answer of the session. Without a look it closes the session at once.
func (s *Session) CloseAfterLook(why error) {
	if s.lookState() == lookDue && s.reached() == noContact && s.Result() != nil && !s.isOver() {
		s.StartLook()
	}
	if s.lookState() != lookRunning {
		s.Close(why)
		return
	}
	s.source.Go(func() { // ends with the look, the supplier, or lookEnds
		select {
		case <-s.look.done:
		case <-s.source.closed.Done():
		case <-time.After(lookEnds):
		}
		s.Session.Close(why)
	})
}

// awaitLook looks at a session, and returns what it says. The session must have no client: a client could get the
// answers. The result is nil if they cannot be read, or are not to be remembered, for example because a reload says so.
func (s *Session) awaitLook(ctx context.Context) *remember.Answers {
	if !s.CanLook() {
		return nil
	}
	select {
	case <-s.StartLook():
		return s.Looked()
	case <-ctx.Done():
		return nil
	}
}

// readLists reads all lists that the server has by its result of initialize, for a client.
func (s *Session) readLists(result *Result, client remember.Client) (*remember.Answers, error) {
	ctx, cancel := context.WithTimeout(context.Background(), s.source.Options().Session.RequestTimeout)
	defer cancel()
	known := s.look.memory.Answers(client)
	answers := &remember.Answers{
		Initialize: string(result.Raw), Stateless: s.Stateless(),
		Pages: make(map[string]map[string]string), Learned: time.Now(),
	}
	for _, kind := range remember.Kinds() {
		if !result.Advertises(kind) {
			continue
		}
		for _, method := range remember.Methods(kind) {
			var inOrder []json.RawMessage
			pages, err := remember.Read(func(params json.RawMessage) (json.RawMessage, error) {
				page, err := s.askForPage(ctx, method, params)
				inOrder = append(inOrder, page)
				return page, err
			})
			switch {
			case errors.Is(err, errUnknown):
				answers.Missing = append(answers.Missing, method)
				continue
			case errors.Is(err, errNoList) && known != nil && known.Pages[method] != nil: // it has had one
				return nil, err
			case errors.Is(err, errNoList), err == nil && pages == nil: // it has none, or one that is too long
				continue
			case err != nil:
				return nil, err
			}
			answers.Pages[method] = pages
			if kind == "tools" && !s.source.Options().Forwards {
				s.noteTools(s.source.tools.NoteList(inOrder))
			}
		}
	}
	return answers, nil
}

// WithoutLists returns what an initialized session says whose lists could not be read.
func (s *Session) WithoutLists() *remember.Answers {
	return &remember.Answers{Initialize: string(s.Result().Raw), Stateless: s.Stateless(), Learned: time.Now()}
}

// errNoList reports that a server answers a request for a list with an error, and errUnknown that it does
// not know the method: many declare resources, and have no templates.
var (
	errNoList  = errors.New("the server gives no such list")
	errUnknown = errors.New("the server does not know this list")
)

// askForPage asks the server for a page of a list.
func (s *Session) askForPage(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	response, err := s.Call(ctx, method, params)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: %w", method, err)
	case response.Error() != nil:
		if code, _ := rawjson.Member(response.Error(), "code"); string(code) == "-32601" {
			return nil, errUnknown
		}
		return nil, errNoList
	}
	return response.Result(), nil
}

// versionsTime bounds learnVersions.
const versionsTime = time.Second

// learnVersions asks a server of a session that nobody uses, and that is about to end, what it says to clients of
// other protocol versions: most answer another initialize. One that does not has told nothing of them.
func (s *Session) learnVersions(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, versionsTime)
	defer cancel()
	asked, _ := rawjson.MemberText(s.Params(), "protocolVersion")
	for _, version := range append(mcp.VersionsWithInitialize(), mcp.VersionStateless) {
		if version == asked {
			continue
		}
		params := WithVersion(s.Params(), version)
		client, _ := remember.ClientOf(params, s.who)
		response, err := s.Call(ctx, mcp.MethodInitialize, params)
		if err != nil || response.Result() == nil || s.Notify(mcp.MethodInitialized, nil) != nil {
			return
		}
		raw := response.Result()
		answered, ok := rawjson.MemberText(raw, "protocolVersion")
		if !ok || answered == s.Result().Version && version < answered {
			return // it keeps to the first version, perhaps because it was the first
		}
		answers, err := s.readLists(&Result{Raw: raw, Version: answered}, client)
		if err != nil || !s.NamesAnswers() || ctx.Err() != nil {
			return
		}
		s.remember(client, answers)
	}
}
