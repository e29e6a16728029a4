package config

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
)

// read reads a file that is part of the configuration.
func (c *Config) read(path string) ([]byte, error) {
	data, err := os.ReadFile(path)
	if err == nil {
		c.files[path] = sha256.Sum256(data)
	}
	return data, err
}

// Files returns the files that c was read from, without the key of ids.
func (c *Config) Files() []string { return slices.Collect(maps.Keys(c.files)) }

// IsRead reports whether c was read from the same as other, so is the same.
func (c *Config) IsRead(other *Config) bool { return maps.Equal(c.files, other.files) }

// restart says what to do about an option that cannot change otherwise.
const restart = "cannot change while sse-server runs: restart it"

// Changes returns what is different in next: names of options, servers and files, without
// their values. It has an error for each difference that needs a restart.
func (c *Config) Changes(next *Config) (changed []string, refused []error) {
	before, after := c.values(true), next.values(true)
	all := maps.Clone(before)
	maps.Copy(all, after)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if before[name] == after[name] {
			continue
		}
		label := name
		if _, ok := before[name]; !ok {
			label += " added"
		} else if _, ok := after[name]; !ok {
			label += " removed"
		}
		changed = append(changed, label)
		if flag := c.option(name); flag != nil && flag.Tag.Has("fixed") {
			refused = append(refused, fmt.Errorf("%s: %s", cmp.Or(next.given[name], c.Place(name)), restart))
		}
	}
	if (c.Certificate == nil) != (next.Certificate == nil) {
		refused = append(refused, fmt.Errorf("%s: HTTP or HTTPS %s", cmp.Or(next.given["tls-cert"], c.Place("tls-cert")), restart))
	}
	if (len(c.Servers) == 0) != (len(next.Servers) == 0) {
		refused = append(refused, fmt.Errorf("%s: one server or several %s", c.Config, restart))
	}
	return changed, refused
}

// Hash returns 48 bits of a hash of the options. Tokens, certificates, the values of
// header and env, and what may be secret in a URL do not count, so that nobody can find
// them out by it.
func (c *Config) Hash() float64 {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q", c.values(false))) // sorted
	return float64(binary.BigEndian.Uint64(sum[:]) >> 16)
}

// values returns the options, servers and files as texts, by name, or without what may be
// secret.
func (c *Config) values(secrets bool) map[string]string {
	values := c.Server.values(secrets)
	for _, s := range c.Servers {
		values[serversKey+"."+s.Name] = fmt.Sprintf("%q", s.values(secrets))
	}
	for path, sum := range c.files {
		if secrets && path != c.Config {
			values[path] = string(sum[:])
		}
	}
	return values
}

func (s *Server) values(secrets bool) map[string]string {
	values := map[string]string{}
	for _, flag := range s.flags {
		texts, isList := flag.Target.Interface().([]string)
		switch {
		case flag.Name == "config", flag.Tag.Has("only"):
		case !secrets && flag.Name == "url":
			values["url"] = s.remote.Place()
		case !secrets && flag.Tag.Has("pairs"):
			for _, text := range texts {
				name, _, _ := strings.Cut(text, flag.Tag.Get("pairs"))
				values[flag.Name] += name + "\n"
			}
		case isList:
			values[flag.Name] = fmt.Sprintf("%q", texts)
		default:
			values[flag.Name] = textOf(flag.Target)
		}
	}
	return values
}
