package signin

import (
	"strings"
	"testing"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/login"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

func TestHowLongALoginLasts(t *testing.T) {
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.Local)
	before, later := now.Add(-time.Hour), now.Add(time.Hour)
	for want, l := range map[string]login.Login{
		"it is renewed as needed": {Refresh: "x"},
		"its token is good until 2026-11-30 13:00; it is renewed as needed":             {Refresh: "x", Expiry: later},
		"its token was good until 2026-11-30 11:00; it is renewed as needed":            {Refresh: "x", Expiry: before},
		"the issuer has ended it on 2026-11-30 11:00":                                   {Ended: before, Expiry: later},
		"it lasts until 2026-11-30 13:00, as the issuer gives nothing to renew it with": {Expiry: later},
		"the issuer does not say how long it lasts":                                     {},
	} {
		ssetest.Want(t, "text", strings.Join(lasting(&l, now), "; "), want)
	}
}
