// Package clusterwords says which names and URLs the options of a cluster may have.
package clusterwords

import (
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// IsName reports whether a cluster, or a replica, may have that name.
var IsName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,48}$`).MatchString

// IsURL reports whether cluster.Options may have that URL, or those URLs with commas between them.
func IsURL(list string) bool {
	return !slices.ContainsFunc(strings.Split(list, ","), func(server string) bool {
		u, err := url.Parse(strings.TrimSpace(server))
		return err != nil || u.Host == "" || !slices.Contains([]string{"nats", "tls", "ws", "wss"}, u.Scheme)
	})
}
