package oauth

import (
	"strings"
	"time"
)

// token is what a valid token says.
type token struct {
	principal        string
	audience, scopes []string
	until            time.Time // when it must be checked again
}

const (
	// skew is how far the clocks of the issuer and of this machine may differ.
	skew = 30 * time.Second
	// maxPrincipal bounds a principal, in bytes.
	maxPrincipal = 256
)

// tokenOf returns the token with these claims, if it is valid now and has a principal.
func (i *issuer) tokenOf(claims map[string]any) (*token, error) {
	now := time.Now()
	t := &token{audience: list(claims["aud"]), scopes: append(list(claims["scope"]), list(claims["scp"])...), until: now.Add(cacheTime)}
	t.principal, _ = claims[i.claim].(string)
	if expiry, ok := instant(claims["exp"]); ok {
		t.until = now.Add(min(cacheTime, expiry.Add(skew).Sub(now)))
	}
	begin, begins := instant(claims["nbf"])
	switch {
	case !now.Before(t.until):
		refused := invalid("the token has expired")
		refused.Expired = true
		return nil, refused
	case begins && now.Before(begin.Add(-skew)):
		return nil, invalid("the token is not valid yet")
	case t.principal == "" || len(t.principal) > maxPrincipal || strings.ContainsFunc(t.principal, func(c rune) bool { return c < ' ' || c == 0x7f }):
		return nil, invalid("the token has no usable claim " + i.claim)
	}
	return t, nil
}

// list returns the texts of a claim: words, or an array. A URL is a word.
func list(claim any) (all []string) {
	if text, ok := claim.(string); ok {
		return strings.Fields(text)
	}
	array, _ := claim.([]any)
	for _, one := range array {
		if text, ok := one.(string); ok {
			all = append(all, text)
		}
	}
	return all
}

// instant returns the time of a claim in seconds since 1970.
func instant(claim any) (time.Time, bool) {
	seconds, ok := claim.(float64)
	return time.Unix(int64(max(0, min(seconds, 1<<40))), 0), ok
}
