package setup

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/clientfile"
	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/config"
	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/exit"
	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/plaintext"
)

// Init writes a file of servers, of what the files of clients have or what the arguments say, and
// returns the exit code.
func (cmd *Command) Init(c *config.Config) int {
	file := c.Init.File
	if file == "" {
		file = "servers.yaml"
	}
	if _, err := os.Lstat(file); !errors.Is(err, fs.ErrNotExist) {
		fmt.Fprintf(cmd.Stderr,
			"sse-server: %s is there already: give another name, as in: sse-server init other.yaml\n", file)
		return exit.Failure
	}
	entries, found, ours := cmd.found(c)
	if len(ours) > 0 {
		fmt.Fprintf(cmd.Stdout, "Left out, as they lead to sse-server itself (with another --addr what is at this "+
			"one is taken): %s\n", plaintext.Visible(strings.Join(ours, ", ")))
	}
	if len(entries) == 0 {
		fmt.Fprintln(cmd.Stderr, "sse-server: no client of this user or folder has a server that can be served: "+
			"give a command, as in: sse-server init -- npx -y @modelcontextprotocol/server-everything")
		return exit.Failure
	}
	how := config.Making{Expand: c.Expand}
	if c.StateDir != "" {
		how.EnvFile = func(server string) string { return envFileFor(c.StateDir, server) }
	} else {
		fmt.Fprintln(cmd.Stderr,
			"sse-server: neither STATE_DIRECTORY nor HOME is set: secrets of the servers are in the file itself")
	}
	made := config.FileOf(entries, how)
	if err := writeMade(file, made); err != nil {
		fmt.Fprintf(cmd.Stderr, "sse-server: %v\n", err)
		return exit.Failure
	}
	fmt.Fprintf(cmd.Stdout, "%s has %s: %s\n", file, plaintext.Count(len(made.Names), "server"),
		plaintext.Visible(strings.Join(made.Names, ", ")))
	cmd.tellVariables(made.Variables)
	for _, path := range slices.Sorted(maps.Keys(made.EnvFiles)) {
		fmt.Fprintf(cmd.Stdout, "Values that may be secret are in %s\n", path)
	}
	isWhole := cmd.checkMade(file, made)
	offered := cmd.offerGateway(c, file, made, found, isWhole)
	addr := ""
	if c.Given("addr") { // for which the entries were chosen
		addr = " --addr " + string(c.Addr)
	}
	fmt.Fprint(cmd.Stdout, nextStep(offered, file, fmt.Sprintf("sse-server%s --config %s", addr, file)))
	return exit.OK
}

// nextStep says what is left to do with a file that has been made, and how clients use it that do not yet. serve is the
// command that serves it.
func nextStep(offered offer, file, serve string) (text string) {
	switch {
	case offered.unasked:
		text = fmt.Sprintf("\nNo client uses it, because nobody can be asked here. With --yes all do: delete %[1]s, "+
			"and run sse-server init %[1]s --yes\n", file)
	case offered.taken && len(offered.refused) > 0:
		text = fmt.Sprintf("\nUnchanged: %s. To be asked again: sse-server init, with the name of another file\n",
			strings.Join(offered.refused, ", "))
	case len(offered.refused) > 0:
		text = fmt.Sprintf("\nNo client uses it. To be asked again: delete %[1]s, and run sse-server init %[1]s\n",
			file)
	}
	if offered.taken {
		return text + fmt.Sprintf("\nNothing has to run: the first client starts the gateway. Keep %s where it is. "+
			"To see its page: %s\n", file, serve)
	}
	return text + fmt.Sprintf("\nThis serves it:\n\n    %s\n\n", serve)
}

// envFileFor returns the path of the env-file of a server in a file that is to be made. No other file has it, also if
// the file is renamed, and init makes another one of its name.
func envFileFor(stateDir, server string) string {
	return filepath.Join(stateDir, "env", server+"-"+strings.ToLower(rand.Text())+".env")
}

// writeMade writes a file that has been made, and the env-files that it names: none of them may be there. If that
// fails, it leaves none.
func writeMade(file string, made config.File) (err error) {
	var written []string
	defer func() {
		for _, path := range written {
			if err != nil {
				_ = os.Remove(path)
			}
		}
	}()
	write := func(path string, data []byte) error {
		to, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600) // another init may run
		if err != nil {
			return err
		}
		written = append(written, path)
		_, err = to.Write(data)
		return errors.Join(err, to.Close())
	}
	if err := write(file, made.Data); err != nil {
		return err
	}
	for path, data := range made.EnvFiles {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
		if err := write(path, data); err != nil {
			return err
		}
	}
	return nil
}

// tellVariables says which variables a file refers to.
func (cmd *Command) tellVariables(all []config.Variable) {
	var texts []string
	for _, v := range all {
		text := v.Name
		if v.About != "" {
			text += " (" + v.About + ")"
		}
		texts = append(texts, text)
	}
	if len(texts) > 0 {
		fmt.Fprintf(cmd.Stdout, "Set these variables first: %s\n", plaintext.Visible(strings.Join(texts, ", ")))
	}
}

// checkMade says what a file that has been made lacks, and what check would refuse in it once its variables
// are set. It reports whether the file can be served as it is.
func (cmd *Command) checkMade(file string, made config.File) (isWhole bool) {
	c, err := config.Load([]string{"check", "--offline", "--config", file}, func(name string) (string, bool) {
		value, set := cmd.LookupEnv(name)
		if !set && slices.ContainsFunc(made.Variables, func(v config.Variable) bool { return v.Name == name }) {
			return "unset", true
		}
		return value, set
	}, new(config.Config))
	warnings, wrong := made.Warnings, []error{err}
	if err == nil {
		warnings = append(warnings, c.Warnings...)
		for _, s := range c.Each() {
			wrong = append(wrong, s.CheckCommand())
		}
	}
	for _, err := range wrong {
		if err != nil {
			warnings = append(warnings, "correct this before you start it: "+err.Error())
		}
	}
	for _, warning := range warnings {
		fmt.Fprintf(cmd.Stderr, "sse-server: %s\n", plaintext.Visible(warning))
	}
	return err == nil && !slices.ContainsFunc(made.Variables, func(v config.Variable) bool {
		_, set := cmd.LookupEnv(v.Name)
		return !set
	})
}

// found returns what the arguments say, else what the files of clients have, without the entries that lead
// to this sse-server itself, which it names. in has where each of those of clients is.
func (cmd *Command) found(c *config.Config) (entries []config.Entry, in []clientfile.Found, ours []string) {
	if c.Server.Kind() != config.OfDemo {
		return []config.Entry{c.EntryOf()}, nil, nil
	}
	all, err := clientfile.Find(cmd.home())
	if err != nil {
		for line := range strings.Lines(err.Error()) {
			fmt.Fprintf(cmd.Stderr, "sse-server: left out: %s\n", plaintext.Visible(strings.TrimSuffix(line, "\n")))
		}
	}
	var files []string
	ignored := map[string][]string{} // by the files
	for _, f := range all {
		if len(f.Ignored) > 0 && ignored[f.File] == nil {
			files = append(files, f.File)
		}
		ignored[f.File] = append(ignored[f.File], f.Ignored...)
		e := config.Entry{Name: f.Name, From: f.File, Command: f.Command, Env: f.Env, Dir: f.Dir, URL: f.URL,
			Header: f.Header, Inputs: f.Inputs,
			OfProject: !clientfile.IsOfUser(f.File, cmd.home()), Apart: f.Stays != ""}
		if f.EnvFile != "" {
			e.EnvFile = []string{f.EnvFile}
		}
		behind, isAnother := c.Behind(e)
		if !isAnother {
			ours = append(ours, f.Name+" of "+f.File)
			continue
		}
		entries, in = append(entries, behind), append(in, f)
	}
	for _, file := range files {
		slices.Sort(ignored[file])
		fmt.Fprintf(cmd.Stderr, "sse-server: %s: ignored, as they are the client's own: %s\n", file,
			plaintext.Visible(strings.Join(slices.Compact(ignored[file]), ", ")))
	}
	return entries, in, ours
}
