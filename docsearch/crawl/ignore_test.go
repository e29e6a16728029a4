package crawl

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// ignoreCases have the files with patterns, and the paths that a walk visits of paths.
var ignoreCases = map[string]struct {
	files   map[string]string
	paths   string
	visited string
}{
	"names":                      {one("*.log\nbuild\n"), "a.log b.txt sub/c.log sub/d.txt build sub/build/x", "b.txt sub/d.txt"},
	"comments and blanks":        {one("# a\n\n   \n\\#b\n\\!c\n"), "a b #b !c", "a b"},
	"directories only":           {one("out/\n"), "out/x sub/out/x sub2/out", "sub2/out"},
	"anchored":                   {one("/top\nsub/mid\n"), "top a/top sub/mid b/sub/mid", "a/top b/sub/mid"},
	"anchored directory":         {one("/a/b/\n"), "a/b/x c/a/b/x", "c/a/b/x"},
	"negation":                   {one("*.log\n!keep.log\n"), "a.log keep.log sub/keep.log", "keep.log sub/keep.log"},
	"all but some kinds":         {one("*\n!*/\n!*.go\n"), "a.go b.txt x/c.go x/d.txt", "a.go x/c.go"},
	"order":                      {one("!keep.log\n*.log\n"), "a.log keep.log b", "b"},
	"below an ignored directory": {one("out/\n!out/keep\n"), "out/keep x", "x"},
	"all but one":                {one("/*\n!/src/\n"), "a src/b other/c", "src/b"},
	"all in it but one":          {one("dir/*\n!dir/keep\n"), "dir/a dir/keep/x y", "dir/keep/x y"},
	"negated directory":          {one("*.log\n!keep\n"), "keep/a.log keep/b", "keep/b"},
	"leading stars":              {one("**/foo/bar\n"), "foo/bar x/foo/bar x/y/foo/bar/z foo/x", "foo/x"},
	"trailing stars":             {one("foo/**\n!foo/**/\n!foo/keep\n"), "foo/a foo/keep foo/b/c", "foo/keep"},
	"middle stars":               {one("a/**/b\n"), "a/b a/x/b a/x/y/b x/a/b a/c", "a/c x/a/b"},
	"stars in a name":            {one("a**b\n"), "ab axb a/b", "a/b"},
	"star and slash":             {one("a/*/c\n"), "a/b/c a/b/d/c a/c", "a/b/d/c a/c"},
	"question mark":              {one("?.txt\n"), "a.txt ab.txt d/b.txt", "ab.txt"},
	"classes":                    {one("[a-c].x\n[!a]y\n[]z]1\n"), "a.x d.x by ay ]1 z1 a1", "a1 ay d.x"},
	"named classes":              {one("x[[:digit:]]\n"), "x1 xa", "xa"},
	"braces are plain":           {one("a{b,c}\n*.{x,y}\n"), "ab ac a{b,c} 1.x 1.{x,y}", "1.x ab ac"},
	"escapes":                    {one("a\\*b\n\\[c\n"), "a*b axb [c", "axb"},
	"spaces":                     {one("trail   \nkeep\\ \na b\n"), "trail keep a%20b c", "c keep"},
	"escaped space":              {one("x\\ \n"), "x%20 x", "x"},
	"carriage returns":           {one("*.log\r\nout/\r\n"), "a.log out/x b", "b"},
	"mark":                       {one("\xef\xbb\xbf*.log\n"), "a.log b", "b"},
	"only a slash":               {one("/\n!\n"), "a b/c", "a b/c"},
	"unclosed class":             {one("a[b\n"), "a[b ab", "a[b ab"},
	"backslash at the end":       {one("a\\\n"), "a a%5C", "a a%5C"},
	"dots":                       {one(".*\n!.gitignore\n"), ".a b .c/d", "b"},
	"nested": {map[string]string{".gitignore": "*.log\n/x\n", "sub/.gitignore": "!a.log\n/y\nz/w\n"},
		"a.log x sub/a.log sub/b.log sub/x sub/y sub/deep/y sub/z/w y", "sub/a.log sub/deep/y sub/x y"},
	"nested negation of a directory": {map[string]string{".gitignore": "out/\n", "sub/.gitignore": "!out/\n"}, "out/a sub/out/a", "sub/out/a"},
	"exclude":                        {map[string]string{".git/info/exclude": "*.tmp\n*.log\n", ".gitignore": "!a.tmp\n"}, "a.tmp b.tmp c.log d", "a.tmp d"},
}

func one(patterns string) map[string]string { return map[string]string{".gitignore": patterns} }

// ignoreTree makes the files of a case. In its paths, %20 is a space.
func ignoreTree(t *testing.T, files map[string]string, paths string) (dir string, all []string) {
	t.Helper()
	for p := range strings.FieldsSeq(paths) {
		all = append(all, strings.NewReplacer("%20", " ", "%5C", `\`).Replace(p))
	}
	dir = tree(t, all...)
	for name, patterns := range files {
		write(t, dir, name, patterns)
		all = append(all, name)
	}
	return dir, all
}

func TestIgnore(t *testing.T) {
	for name, tc := range ignoreCases {
		t.Run(name, func(t *testing.T) {
			dir, _ := ignoreTree(t, tc.files, tc.paths)
			got := walked(t, openFolder(t, dir, Options{}), ".")
			want := strings.NewReplacer("%5C", `\`).Replace(tc.visited)
			if strings.Join(got, " ") != want {
				t.Errorf("visited %q, want %q", got, want)
			}
		})
	}
}

// TestIgnoreAgreesWithGit asks git about each path.
func TestIgnoreAgreesWithGit(t *testing.T) {
	for _, name := range slices.Sorted(maps.Keys(ignoreCases)) {
		tc := ignoreCases[name]
		t.Run(name, func(t *testing.T) {
			dir, all := ignoreTree(t, tc.files, tc.paths)
			git(t, dir, "", "init", "--quiet", "--template=")
			ignored := strings.Split(git(t, dir, strings.Join(all, "\x00"), "check-ignore", "-z", "--no-index", "--stdin"), "\x00")
			var want []string
			for _, p := range all {
				if !slices.Contains(ignored, p) && !strings.Contains("/"+p, "/.") { // hidden files are never visited
					want = append(want, p)
				}
			}
			slices.Sort(want)
			if got := walked(t, openFolder(t, dir, Options{}), "."); !slices.Equal(got, want) {
				t.Errorf("visited %q, git says %q", got, want)
			}
		})
	}
}

func git(t *testing.T, dir, stdin string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Env = append(cmd.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1")
	cmd.Stdin = strings.NewReader(stdin)
	out, err := cmd.Output()
	if err != nil && cmd.ProcessState.ExitCode() != 1 { // 1: nothing is ignored
		t.Fatalf("git %q: %v", args, err)
	}
	return string(out)
}

func TestDocsearchIgnoreIsStronger(t *testing.T) {
	dir := tree(t, "a.log", "b.log", "c.txt", "d.txt")
	write(t, dir, ".gitignore", "*.log\n.*\n")
	write(t, dir, ".docsearchignore", "!a.log\nd.txt\n")
	if got, want := walked(t, openFolder(t, dir, Options{}), "."), []string{"a.log", "c.txt"}; !slices.Equal(got, want) {
		t.Errorf("visited %q, want %q", got, want)
	}
}

// TestNothingIsVisitedWithoutItsRules changes the rules while they are read: a walk
// either follows them or fails.
func TestNothingIsVisitedWithoutItsRules(t *testing.T) {
	dir := tree(t, "secret.env", "a.txt")
	path := filepath.Join(dir, ".gitignore")
	must(t, os.WriteFile(path, []byte("*.env\n"), 0o644))
	f := openFolder(t, dir, Options{})
	var writer sync.WaitGroup
	writer.Go(func() { // ends after its rounds
		for i := range 300 {
			rules := "*.env\n" + strings.Repeat("# filler\n", i%7*100)
			temporary := path + fmt.Sprint(i%2)
			if os.WriteFile(temporary, []byte(rules), 0o644) != nil || os.Rename(temporary, path) != nil {
				return
			}
		}
	})
	for range 100 {
		err := f.Walk(t.Context(), ".", func(file File, _ error) error {
			if file.Path == "secret.env" {
				t.Error("an ignored file is visited")
			}
			return nil
		})
		if err != nil && !errors.Is(err, ErrChanged) {
			t.Error(err)
		}
	}
	writer.Wait()
}

// Files that are fit one by one are not when they add up.
func TestNestedIgnoreFilesAreBounded(t *testing.T) {
	literals, globs := strings.Repeat("a\n", maxPatterns/4), strings.Repeat("x*"+strings.Repeat("a", 98)+"\n", maxGlobBytes/400)
	for name, tc := range map[string]struct{ data, visited string }{
		"literals": {literals, "b d/b d/e/b d/e/f/b"},
		"globs":    {globs, "b d/b d/e/b d/e/f/b"},
		"more":     {literals + "c\n", "b d/b d/e/b"},
		"longer":   {globs + strings.Repeat("?", 100), "b d/b d/e/b"},
		"many":     {literals + literals + literals + literals + "c\n", ""},
		"large":    {strings.Repeat("#", maxIgnoreBytes+1), ""},
	} {
		dir := tree(t, "b", "d/b", "d/e/b", "d/e/f/b")
		for _, at := range []string{".", "d", "d/e", "d/e/f"} {
			write(t, dir, at+"/.gitignore", tc.data)
		}
		visited, u := walkedBut(t, openFolder(t, dir, Options{}), ".")
		if got := strings.Join(visited, " "); got != tc.visited {
			t.Errorf("%s: visited %q, want %q", name, got, tc.visited)
		}
		if (u.Err != nil) != (len(tc.visited) < len("b d/b d/e/b d/e/f/b")) {
			t.Errorf("%s: got %v", name, u.Err)
		}
	}
}

// BenchmarkIgnores compares a path with as many patterns as may apply in a directory.
func BenchmarkIgnores(b *testing.B) {
	name := strings.Repeat("a", 60)
	deep := strings.Repeat(name+"/", maxDepth) + name
	for _, bm := range []struct{ name, line, path string }{
		{"literals", "other-name.txt\n", deep},
		{"globs", "*.other\n", deep},
		{"stars", strings.Repeat("*a", 30) + "*b\n", strings.Repeat("a", 250)},
		{"double stars", "**/" + strings.Repeat("*a", 30) + "*b\n", deep},
		{"double stars in a row", strings.Repeat("**/*a/", 10) + "b\n", deep},
	} {
		r := &rules{dir: "."}
		for n := range maxPatterns {
			if n*len(bm.line) > maxGlobBytes-1000 && bm.name != "literals" {
				break
			}
			must(b, r.add([]byte(bm.line)))
		}
		b.Run(bm.name, func(b *testing.B) {
			for b.Loop() {
				r.ignores(bm.path, false)
			}
		})
	}
}

// FuzzIgnore checks that no pattern breaks the matching, and that a negated pattern
// matches what the pattern matches.
func FuzzIgnore(f *testing.F) {
	for _, tc := range ignoreCases {
		f.Add(tc.files[".gitignore"], "a/b.log")
	}
	f.Add("a[\n[]\n\\\n**\n/**/\n!\n", "x")
	f.Fuzz(func(t *testing.T, data, path string) {
		all := &rules{dir: "."}
		_ = all.add([]byte(data))
		for i := range all.patterns {
			p := all.patterns[i : i+1]
			r := &rules{dir: ".", patterns: p}
			p[0].negated = false
			plain := r.ignores(path, true)
			p[0].negated = true
			if r.ignores(path, true) {
				t.Errorf("a negated %+v ignores %q", p[0], path)
			}
			p[0].negated = false
			if below := (&rules{parent: r, dir: "."}); below.ignores(path, true) != plain {
				t.Errorf("%+v does not apply below", p[0])
			}
		}
	})
}
