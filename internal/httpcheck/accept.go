package httpcheck

import (
	"mime"
	"net/http"
	"strconv"
	"strings"

	"github.com/mcp-sse/mcp-sse/internal/httpanswer"
	"github.com/mcp-sse/mcp-sse/metrics"
)

// The media types of the transports.
const (
	mediaJSON   = "application/json"
	mediaEvents = "text/event-stream"
)

// Accept is the Accept header of a request: its media ranges, in their order. The zero value is
// that of a request without one, which takes anything.
type Accept []mediaRange

type mediaRange struct {
	media   string // in lower case, without parameters; empty for one that is not valid
	quality float64
}

// AcceptOf returns the Accept header of a request.
func AcceptOf(r *http.Request) (all Accept) {
	header := strings.Join(r.Header["Accept"], ",")
	if strings.TrimSpace(header) == "" {
		return nil
	}
	for part := range strings.SplitSeq(header, ",") {
		one := mediaRange{strings.ToLower(strings.TrimSpace(part)), 1}
		if strings.Contains(one.media, ";") {
			var params map[string]string
			one.media, params, _ = mime.ParseMediaType(one.media) // an invalid one has no media type, or no params
			if q, err := strconv.ParseFloat(params["q"], 64); err == nil && q >= 0 && q <= 1 {
				one.quality = q
			}
		}
		all = append(all, one)
	}
	return all
}

// Quality returns the quality of a media type, 0 if it is not accepted, and the place of the media
// range that says so: the first of the most specific ones that match (RFC 9110, 12.5.1).
func (a Accept) Quality(media string) (quality float64, place int) {
	if a == nil {
		return 1, 0
	}
	kind, _, _ := strings.Cut(media, "/")
	best := 0
	for i, one := range a {
		match := 0
		switch one.media {
		case media:
			match = 3
		case kind + "/*":
			match = 2
		case "*/*":
			match = 1
		}
		if match > best {
			best, quality, place = match, one.quality, i
		}
	}
	return quality, place
}

// Names reports whether the header names a media type or range itself, and accepts it.
func (a Accept) Names(media string) bool {
	for _, one := range a {
		if one.media == media && one.quality > 0 {
			return true
		}
	}
	return false
}

// Prefers reports whether the header names a media type, and gives it a greater quality than another one, which
// need not be named.
func (a Accept) Prefers(media, other string) bool {
	quality, _ := a.Quality(media)
	otherQuality, _ := a.Quality(other)
	return a.Names(media) && quality > otherQuality
}

// TakesEvents reports whether a stream of events is accepted.
func (a Accept) TakesEvents() bool {
	quality, _ := a.Quality(mediaEvents)
	return quality > 0
}

// NamesAnswer reports whether the header names a form of the answer to a POST, or a range of such forms. That of curl,
// which is */*, names none.
func (a Accept) NamesAnswer() bool {
	for _, media := range []string{mediaJSON, mediaEvents, "application/*", "text/*"} {
		if a.Names(media) {
			return true
		}
	}
	return false
}

// AnswerForm returns the form of the answer to a POST: MCP wants clients to take both JSON and
// streams, but many list one.
//
//	Accept has                | the form is
//	--------------------------|------------
//	both, or there is none    | FormAny
//	both, the stream first    | FormEvents
//	application/json alone    | FormJSON
//	text/event-stream alone   | FormEvents
//	neither                   | 406
func AnswerForm(r *http.Request) (httpanswer.Form, *Refusal) {
	accept := AcceptOf(r)
	if accept == nil {
		return httpanswer.FormAny, nil
	}
	answer, answerPlace := accept.Quality(mediaJSON)
	events, eventsPlace := accept.Quality(mediaEvents)
	switch {
	case answer == 0 && events == 0:
		return httpanswer.FormAny, Refused(http.StatusNotAcceptable, metrics.PostNotAcceptable,
			"the Accept header must list application/json, text/event-stream, or both")
	case events == 0:
		return httpanswer.FormJSON, nil
	case events > answer || events == answer && eventsPlace < answerPlace:
		return httpanswer.FormEvents, nil
	}
	return httpanswer.FormAny, nil
}
