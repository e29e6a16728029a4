package clientfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/tailscale/hujson"

	"github.com/mcp-sse/mcp-sse/internal/clients"
)

// systems are those that have a folder below the home directory.
var systems = map[string]string{"~/Library/": "darwin", "~/AppData/": "windows"}

// Files returns the files that the client reads, those that are there first. home is the home directory.
func Files(e *clients.Entry, home string) (files []string) { return here(e.Files, home) }

// Others returns the other files of the user in which the client has entries, to which connect writes nothing.
func Others(e *clients.Entry, home string) (files []string) { return here(e.Others, home) }

// here returns files of the table that this system can have, those that are there first.
func here(all []string, home string) (files []string) {
	for _, file := range all {
		elsewhere := false
		for folder, system := range systems {
			elsewhere = elsewhere || strings.HasPrefix(file, folder) && system != runtime.GOOS
		}
		if elsewhere {
			continue
		}
		if isInHome(file) {
			file = below(home, file)
		}
		files = append(files, file)
	}
	slices.SortStableFunc(files, func(a, b string) int { return exists(b) - exists(a) })
	return files
}

// isInHome reports whether a file of the table is one of the user, not of a project, and below returns its path then.
func isInHome(file string) bool { return strings.HasPrefix(file, "~/") }

func below(home, file string) string { return filepath.Join(home, strings.TrimPrefix(file, "~/")) }

func exists(file string) int {
	if _, err := os.Stat(file); err != nil {
		return 0
	}
	return 1
}

// Result says what Write has done.
type Result struct {
	// Added are the names of new entries, and Same of those that were there already.
	Added, Same []string
	// Replaced are the names of entries that had another URL, and Taken of those that had more.
	Replaced, Taken []string
	// Unlinked says that the file had more names, which keep what it had.
	Unlinked bool
}

// Write adds the entries to a file, which it may make. All else in the file stays, comments too, and so
// does an entry with the same name, which is an error, unless it had no more than another URL, or takes is set.
//
// The file is replaced in one step, so that it is never half written. That takes it from its other names (hard
// links), which may be those of a backup that must not change.
func (e *Editor) Write(c clients.Client, file string, servers []clients.Server, takes bool) (w Result, err error) {
	if c.Entry == nil || c.Entry.Key == "" {
		return w, fmt.Errorf("%s has no file: use what is printed", c.Name)
	}
	unlock, err := e.lock()
	if err != nil {
		return w, err
	}
	defer unlock()
	var names []string
	for _, s := range servers {
		names = append(names, s.Name)
	}
	of := formOf(c.Entry)
	unlinked, err := e.edit(file, func(before []byte) (after []byte, err error) {
		after, did, err := of.add(bytes.Clone(before), servers, takes)
		w = Result{Replaced: did.replaced, Taken: did.taken}
		for _, s := range servers {
			alone, _, err := of.add(bytes.Clone(before), []clients.Server{s}, takes)
			switch {
			case slices.Contains(did.replaced, s.Name), slices.Contains(did.taken, s.Name):
			case err == nil && bytes.Equal(alone, before):
				w.Same = append(w.Same, s.Name)
			default:
				w.Added = append(w.Added, s.Name)
			}
		}
		return after, err
	}, func(before, after []byte) error { return e.note(file, of, before, after, names) })
	if err != nil {
		return Result{}, err
	}
	w.Unlinked = unlinked
	return w, nil
}

// did has the names of entries that were there: of those that had another URL, and of those that had more.
type did struct{ replaced, taken []string }

// add returns a configuration in JSON with the entries.
func (e inJSON) add(data []byte, servers []clients.Server, takes bool) (_ []byte, d did, err error) {
	fresh := len(bytes.TrimSpace(data)) == 0 || string(data) == "{}"
	if fresh {
		data = []byte("{}")
	}
	all, err := hujson.Parse(data)
	if err != nil {
		return nil, d, fmt.Errorf("it is not valid JSON: %w", err)
	}
	if count(&all, e.Key) > 1 {
		return nil, d, fmt.Errorf("it has %s twice: make one of them", e.Key)
	}
	if all.Find("/"+e.Key) == nil {
		if err := all.Patch(patch("/"+e.Key, json.RawMessage("{}"))); err != nil {
			return nil, d, fmt.Errorf("it is not a JSON object: %w", err)
		}
	}
	for _, s := range servers {
		one, path := e.JSON(s), "/"+e.Key+"/"+s.Name
		if count(all.Find("/"+e.Key), s.Name) > 1 {
			return nil, d, fmt.Errorf("it has %s twice: make one of them", s.Name)
		}
		old := all.Find(path)
		if old == nil {
			if err := all.Patch(patch(path, one)); err != nil {
				return nil, d, fmt.Errorf("%s is not an object: %w", e.Key, err)
			}
			continue
		}
		plain := old.Clone()
		plain.Standardize()
		differs, more := compare(plain.Pack(), one)
		if !differs {
			continue
		}
		is, err := hujson.Parse(one)
		switch {
		case err != nil:
			return nil, d, err
		case len(more) > 0 && !takes:
			return nil, d, fmt.Errorf("it has a server %s with %s: "+takeOver, s.Name, strings.Join(more, ", "))
		case len(more) > 0:
			old.Value = is.Value
			d.taken = append(d.taken, s.Name)
		default:
			merge(old, is)
			d.replaced = append(d.replaced, s.Name)
		}
	}
	if err := addInputs(&all, e.Inputs(servers)); err != nil {
		return nil, d, err
	}
	if fresh {
		all.Format()
	}
	return all.Pack(), d, nil
}

// takeOver is what to do about an entry that would be lost.
const takeOver = "--replace takes it over, or give another --name"

// addInputs adds what the file has beside the entries, unless it has that already.
func addInputs(all *hujson.Value, inputs json.RawMessage) error {
	old := all.Find("/inputs")
	switch {
	case inputs == nil:
		return nil
	case old == nil:
		return all.Patch(patch("/inputs", inputs))
	}
	plain := old.Clone()
	plain.Standardize()
	var was, is []map[string]any
	if err := json.Unmarshal(plain.Pack(), &was); err != nil {
		return errors.New("its inputs are not a list of objects")
	}
	_ = json.Unmarshal(inputs, &is) // of the table
	for _, input := range is {
		i := slices.IndexFunc(was, func(other map[string]any) bool { return other["id"] == input["id"] })
		switch {
		case i < 0:
			data, _ := json.Marshal(input) // it was JSON
			if err := all.Patch(patch("/inputs/-", data)); err != nil {
				return err
			}
		case !reflect.DeepEqual(was[i], input):
			return fmt.Errorf("it has another input %v: give that another id first", input["id"])
		}
	}
	return nil
}

// count returns how many members of an object have a name.
func count(v *hujson.Value, name string) (n int) {
	if v == nil {
		return 0
	}
	object, _ := v.Value.(*hujson.Object)
	if object == nil {
		return 0
	}
	for _, member := range object.Members {
		if nameOf(member) == name {
			n++
		}
	}
	return n
}

// compare reports whether an entry differs from another in its place, and what would be lost of it: what
// is neither its address nor the same in the other.
func compare(old, other json.RawMessage) (differs bool, lost []string) {
	was, is := map[string]any{}, map[string]any{}
	if json.Unmarshal(old, &was) != nil || json.Unmarshal(other, &is) != nil {
		return true, []string{"what is not an entry"}
	}
	for name, value := range was {
		if reflect.DeepEqual(value, is[name]) {
			continue
		}
		args, _ := value.([]any)
		ofOurs := name == "args" && len(args) == 3 && args[0] == "stdio" && args[1] == "--url" || name == "command" &&
			isMoved(value, is[name])
		if !ofOurs && name != "type" && !slices.Contains(addresses, name) {
			lost = append(lost, name)
		}
	}
	slices.Sort(lost)
	return !reflect.DeepEqual(was, is), lost
}

// merge makes old what is says, and changes no more of it than what differs, so that comments stay.
func merge(old *hujson.Value, is hujson.Value) {
	switch is := is.Value.(type) {
	case *hujson.Object:
		if was, ok := old.Value.(*hujson.Object); ok {
			mergeMembers(was, is)
			return
		}
	case *hujson.Array:
		if was, ok := old.Value.(*hujson.Array); ok && len(was.Elements) == len(is.Elements) {
			for i := range was.Elements {
				merge(&was.Elements[i], is.Elements[i])
			}
			return
		}
	}
	old.Value = is.Value
}

// mergeMembers is merge of objects. A member that is missing takes the place of one that is taken out.
func mergeMembers(was, is *hujson.Object) {
	missing := slices.DeleteFunc(slices.Clone(is.Members),
		func(m hujson.ObjectMember) bool { return indexOf(was, nameOf(m)) >= 0 })
	var kept []hujson.ObjectMember
	var comments hujson.Extra // of members that are taken out
	for _, member := range was.Members {
		i := indexOf(is, nameOf(member))
		switch {
		case i >= 0:
			merge(&member.Value, is.Members[i].Value)
		case len(missing) > 0:
			member.Name.Value, member.Value.Value = missing[0].Name.Value, missing[0].Value.Value
			missing = missing[1:]
		default:
			if !member.Name.BeforeExtra.IsStandard() {
				comments = append(comments, member.Name.BeforeExtra...)
			}
			continue
		}
		member.Name.BeforeExtra = append(comments, member.Name.BeforeExtra...)
		kept, comments = append(kept, member), nil
	}
	was.Members, was.AfterExtra = append(kept, missing...), append(comments, was.AfterExtra...)
}

// indexOf returns the place of a member in an object, below 0 if it has none of this name.
func indexOf(object *hujson.Object, name string) int {
	return slices.IndexFunc(object.Members, func(m hujson.ObjectMember) bool { return nameOf(m) == name })
}

func nameOf(member hujson.ObjectMember) string {
	name, _ := member.Name.Value.(hujson.Literal)
	return name.String()
}

// isMoved reports whether two commands are the same program at different paths.
func isMoved(was, is any) bool {
	before, hasBefore := was.(string)
	now, hasNow := is.(string)
	return hasBefore && hasNow && filepath.Base(before) == filepath.Base(now)
}

// patch is a JSON Patch (RFC 6902) that adds a value.
func patch(path string, value json.RawMessage) []byte { return operation("add", path, value) }

// operation is a JSON Patch of one operation.
func operation(op, path string, value json.RawMessage) []byte {
	at, _ := json.Marshal(path) // a text is JSON
	if value == nil {
		return fmt.Appendf(nil, `[{"op":%q,"path":%s}]`, op, at)
	}
	return fmt.Appendf(nil, `[{"op":%q,"path":%s,"value":%s}]`, op, at, value)
}

// pointer returns the JSON Pointer (RFC 6901) of an entry, whose name people choose.
func pointer(key, name string) string {
	return "/" + key + "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
}

// add returns a configuration in TOML with the entries at its end, but for those that it has.
func (e inTOML) add(data []byte, servers []clients.Server, takes bool) (_ []byte, d did, err error) {
	known, err := tablesIn(data)
	if err != nil {
		return nil, d, err
	}
	var missing []clients.Server
	for _, s := range servers {
		old, there := known[s.Name]
		if !there {
			missing = append(missing, s)
			continue
		}
		text := e.Text([]clients.Server{s})
		ours, err := tablesIn([]byte(text))
		if err != nil {
			return nil, d, err
		}
		differs := ""
		for _, name := range slices.Sorted(maps.Keys(ours[s.Name])) {
			if !reflect.DeepEqual(old[name], ours[s.Name][name]) {
				differs = name
				break
			}
		}
		switch {
		case differs == "":
		case !takes:
			return nil, d, fmt.Errorf("it has a server %s already, with another %s: "+takeOver, s.Name, differs)
		default:
			if data, err = e.put(data, s.Name, &text); err != nil {
				return nil, d, err
			}
			d.taken = append(d.taken, s.Name)
		}
	}
	if len(missing) == 0 {
		return data, d, nil
	}
	if len(data) > 0 {
		data = append(bytes.TrimRight(bytes.Clone(data), "\r\n"), "\n\n"...)
	}
	data = append(data, e.Text(missing)+"\n"...)
	known, err = tablesIn(data)
	for _, s := range servers {
		if err != nil || len(s.Args) == 0 && known[s.Name]["url"] != s.URL ||
			len(s.Args) > 0 && known[s.Name]["command"] != s.Program {
			return nil, d, errors.New("it has mcp_servers in a form that takes no tables, such as { } in one line: " +
				"make it [mcp_servers.NAME], or write the entry by hand")
		}
	}
	return data, d, nil
}

// tablesIn returns the entries in TOML.
func tablesIn(data []byte) (map[string]map[string]any, error) {
	var file struct {
		Servers map[string]map[string]any `toml:"mcp_servers"`
	}
	if err := toml.Unmarshal(data, &file); err != nil {
		return nil, fmt.Errorf("it is not valid TOML: %w", err)
	}
	return file.Servers, nil
}
