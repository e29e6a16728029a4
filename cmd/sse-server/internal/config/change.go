package config

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/alecthomas/kong"
)

const (
	// maxFile bounds a file, in bytes: a thousand servers, or ten thousand tokens, take less.
	maxFile = 1 << 20
	// fileTimeout is how long a pipe or a device may take.
	fileTimeout = 10 * time.Second
)

// read reads a file that is part of the configuration.
func (c *Config) read(path string) ([]byte, os.FileInfo, error) {
	data, info, err := readFile(path)
	c.files[path] = digest(data, err)
	// The > of PowerShell writes these.
	if bytes.HasPrefix(data, []byte("\xff\xfe")) || bytes.HasPrefix(data, []byte("\xfe\xff")) {
		err = fmt.Errorf("%s is in UTF-16: save it in UTF-8", path)
	}
	return data, info, missing(path, err)
}

// digest returns the hash of what was read of a file; zero if it could not be read.
func digest(data []byte, err error) (sum [sha256.Size]byte) {
	if err == nil {
		sum = sha256.Sum256(data)
	}
	return sum
}

// missing returns an error about a file, in plain words if it is not there, or a folder.
func missing(path string, err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("there is no file %s", path)
	case errors.Is(err, syscall.EISDIR):
		return fmt.Errorf("%s is a folder: name a file", path)
	}
	return err
}

// readFile reads and describes one file. A pipe that nobody writes is empty: no reload waits for it.
func readFile(path string) ([]byte, os.FileInfo, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, err
	}
	defer file.Close()
	info, unknown := file.Stat()
	_ = file.SetReadDeadline(time.Now().Add(fileTimeout)) // files have none
	data, err := io.ReadAll(io.LimitReader(file, maxFile+1))
	if len(data) > maxFile {
		err = fmt.Errorf("%s is over %d bytes", path, maxFile)
	}
	return data, info, cmp.Or(err, unknown)
}

// Files returns the files that c was read from, without the key of ids. After an error they
// include those that could not be read.
func (c *Config) Files() []string { return slices.Collect(maps.Keys(c.files)) }

// Digests returns the hashes of what was read, by the files.
func (c *Config) Digests() map[string][sha256.Size]byte { return maps.Clone(c.files) }

// HasChanged reports whether a file that c was read from is another one now.
func (c *Config) HasChanged() bool {
	for path, sum := range c.files {
		if data, _, err := readFile(path); digest(data, err) != sum {
			return true
		}
	}
	return false
}

// Again loads the configuration as its files are now, from the same arguments and variables.
func (c *Config) Again() (*Config, error) { return c.again() }

// IsRead reports whether c was read from the same as other, so is the same.
func (c *Config) IsRead(other *Config) bool { return maps.Equal(c.files, other.files) }

// restart says what to do about an option that cannot change otherwise.
const restart = "cannot change while sse-server runs: restart it"

// CheckChange returns an error for each option that is different in next and needs a restart,
// and for each command that is and names no program. At the start that is a warning, so that
// the other servers can be served.
func (c *Config) CheckChange(next *Config) error {
	var errs []error
	refuse := func(differs bool, place, what string) {
		if differs {
			errs = append(errs, fmt.Errorf("%s: %s%s", place, what, restart))
		}
	}
	place := func(option string) string { return cmp.Or(next.given[option], c.Place(option)) }
	for i, flag := range c.flags {
		refuse(flag.Tag.Has("fixed") && flagText(flag.Target) != flagText(next.flags[i].Target), place(flag.Name), "")
	}
	refuse((c.Certificate == nil) != (next.Certificate == nil), place("tls-cert"), "HTTP or HTTPS ")
	refuse((len(c.Servers) == 0) != (len(next.Servers) == 0), c.Config, "one server or several ")
	for _, s := range next.Servers {
		isSame := func(other *Server) bool { return other.Name == s.Name && slices.Equal(other.Command, s.Command) }
		if !slices.ContainsFunc(c.Servers, isSame) {
			errs = append(errs, s.CheckCommand())
		}
	}
	return errors.Join(errs...)
}

// Hash returns 48 bits of a hash of the options. Tokens, certificates, the values of
// header and env, nats, and what may be secret in a URL do not count, so that nobody can find
// them out by it.
func (c *Config) Hash() float64 {
	sum := sha256.New()
	for _, v := range c.Views {
		fmt.Fprintf(sum, "%q", v.text())
	}
	for _, s := range append([]*Server{&c.Server}, c.namedEndpoints()...) {
		fmt.Fprintf(sum, "%q", s.Name)
		for _, flag := range s.flags {
			values, isList := flag.Target.Interface().([]string)
			switch {
			case flag.Name == "config", flag.Name == "nats", flag.Tag.Has("only"):
				continue
			case flag.Name == "url":
				values = []string{s.remote.Place()}
			case !isList:
				values = []string{flagText(flag.Target)}
			}
			if isEmptyList(flag) {
				fmt.Fprintf(sum, "%s=[]", flag.Name)
			}
			for _, value := range values {
				if separator := flag.Tag.Get("pairs"); separator != "" {
					value, _, _ = strings.Cut(value, separator)
				}
				fmt.Fprintf(sum, "%s=%q", flag.Name, value)
			}
		}
	}
	return float64(binary.BigEndian.Uint64(sum.Sum(nil)) >> 16)
}

// Changes names what is different in next: options, options of servers as docs.warm, servers that are new
// or gone, and files of secrets. It tells no values.
func (c *Config) Changes(next *Config) (names []string) {
	names = changedOptions("", &c.Server, &next.Server)
	if !maps.Equal(c.Tokens, next.Tokens) {
		names = append(names, "the tokens")
	}
	if !sameCertificate(c.Certificate, next.Certificate) {
		names = append(names, "the certificate")
	}
	before := map[string]*Server{}
	for _, s := range c.namedEndpoints() {
		before[s.Name] = s
	}
	rules := map[string]string{}
	for _, v := range c.Views {
		rules[v.Name] = v.text()
	}
	for _, s := range next.namedEndpoints() {
		if was := before[s.Name]; was == nil {
			names = append(names, "new: "+s.Name)
		} else if s.Kind() != OfView || s.Name != rootName { // the view of all has those of the top level
			names = append(names, changedOptions(s.Name+".", was, s)...)
		}
		delete(before, s.Name)
	}
	for _, v := range next.Views {
		if was, isThere := rules[v.Name]; isThere && !v.ofAll && was != v.text() {
			names = append(names, v.Name+".servers")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(before)) {
		names = append(names, "gone: "+name)
	}
	return names
}

// namedEndpoints returns the servers of the file, then the views.
func (c *Config) namedEndpoints() []*Server {
	all := slices.Clone(c.Servers)
	for _, v := range c.Views {
		all = append(all, v.Server)
	}
	return all
}

// changedOptions names the options that are different, with prefix before each.
func changedOptions(prefix string, was, is *Server) (names []string) {
	for i, flag := range was.flags {
		next := is.flags[i]
		isSame := flagText(flag.Target) == flagText(next.Target) && isEmptyList(flag) == isEmptyList(next)
		if !flag.Tag.Has("only") && flag.Name != "config" && !isSame {
			names = append(names, prefix+flag.Name)
		}
	}
	if slices.Equal(was.Header, is.Header) && !maps.EqualFunc(was.remote.Header, is.remote.Header, slices.Equal) {
		names = append(names, prefix+"header, by what it refers to")
	}
	return names
}

// isEmptyList reports whether an option is a list without an element, which is another thing than to be left out.
func isEmptyList(flag *kong.Flag) bool {
	return flag.Tag.Has("empty") && !flag.Target.IsNil() && flag.Target.Len() == 0
}

func sameCertificate(a, b *tls.Certificate) bool {
	if a == nil || b == nil {
		return a == b
	}
	return slices.EqualFunc(a.Certificate, b.Certificate, slices.Equal)
}
