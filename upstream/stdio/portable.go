package stdio

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"

	"github.com/mcp-sse/mcp-sse/internal/environ"
)

// A command is portable if the directory in which it runs takes no part in which program that is: then the
// server should say the same in another one. A cloned folder must not be able to choose what servers say in
// others, so whatever is in doubt is not portable.

var (
	// local are programs that run what the directory says, or a text that may.
	local = []string{
		"sh", "bash", "zsh", "dash", "fish", "ksh", "cmd", "powershell", "pwsh", "env", "xargs", "sudo", "nohup", "time", "timeout",
		"make", "just", "task", "npm", "pnpm", "yarn", "bun", "deno", "tsx", "ts-node", "cargo", "go", "uv", "poetry", "pipenv", "pdm",
		"hatch", "rye", "pixi", "conda", "mamba", "bundle", "rake", "dotnet", "gradle", "mvn", "docker-compose", "direnv", "mise",
		"asdf", "nix", "nix-shell", "devbox", "devenv",
	}
	// interpreters run the script that is their first argument. With any other one they may look for it in the
	// directory.
	interpreters = regexp.MustCompile(`^(node|nodejs|python[0-9.]*|pypy[0-9.]*|ruby|perl|php)$`)
	// choosers are files in a directory, or in one above it, that choose code: registries, versions, variables.
	choosers = []string{
		".npmrc", ".yarnrc", ".yarnrc.yml", ".pnp.cjs", ".pnpmfile.cjs", "uv.toml", "bunfig.toml", "deno.json", "deno.jsonc",
		".env", ".tool-versions", "mise.toml", ".mise.toml", ".Rprofile", ".Renviron", "tsconfig.json", ".node-version", ".nvmrc",
		".python-version", "doppler.yaml",
	}
	// registry matches the first part of the name of an image, and scheme the beginning of a URL.
	registry = regexp.MustCompile(`^[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)*(\.[A-Za-z]{2,}|:[0-9]+)$`)
	scheme   = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]+:`)
	// bare matches an argument that may name a package, with its version: group 1 is the name.
	bare = regexp.MustCompile(`^((?:@[A-Za-z0-9._~-]+/)?[A-Za-z0-9][A-Za-z0-9._~-]*)(?:\[[^\]]*\])?(?:@.*|[=<>!~]=.*)?$`)
)

// isPortable reports whether the command is portable now. It reads the file system.
func (c Command) isPortable() bool {
	dir, err := filepath.Abs(c.Dir)
	folders, known := c.folders(dir)
	program := c.program()
	name := strings.TrimSuffix(strings.ToLower(filepath.Base(program)), ".exe")
	switch {
	case err != nil || !known || !filepath.IsAbs(program) || !isFile(program) || c.findsIn(folders):
		return false
	case filepath.Base(c.Path) != c.Path && !filepath.IsAbs(c.Path):
		return false
	case slices.Contains(local, name) || name == "docker" && slices.Contains(c.Args, "compose"):
		return false
	case interpreters.MatchString(name) && (len(c.Args) == 0 || !filepath.IsAbs(c.Args[0]) || !isFile(c.Args[0])):
		return false
	}
	var packages []string
	for _, arg := range c.Args {
		_, value, isOption := strings.Cut(arg, "=")
		if !strings.HasPrefix(arg, "-") || !isOption {
			value = arg
		}
		if isRelative(value) || isScript(value) && !isFile(value) || isNamed(dir, arg) {
			return false
		}
		if named := bare.FindStringSubmatch(value); named != nil {
			packages = append(packages, named[1])
		}
	}
	return !slices.ContainsFunc(folders, func(folder string) bool { return c.choosesAbove(folder, packages) })
}

// folders returns the folders in which the process may look for what it runs: that in which it runs, under each of
// its names, and those that an editor names to it. known is false if one cannot be found out.
func (c Command) folders(dir string) (folders []string, known bool) {
	folders = []string{dir}
	for _, variable := range c.environment() {
		name, value, _ := strings.Cut(variable, "=")
		if environ.IsPlace(name) && filepath.IsAbs(value) {
			folders = append(folders, filepath.SplitList(value)...)
		}
	}
	for _, folder := range slices.Clone(folders) {
		target, err := filepath.EvalSymlinks(folder)
		if err != nil {
			return nil, false
		}
		folders = append(folders, target)
	}
	return folders, true
}

// findsIn reports whether PATH has programs of one of these folders, or of packages in a folder above it.
func (c Command) findsIn(folders []string) bool {
	for _, variable := range c.environment() {
		value, isPath := strings.CutPrefix(variable, "PATH=")
		if !isPath {
			continue
		}
		for _, element := range filepath.SplitList(value) {
			project, _, isOfPackages := strings.Cut(element, string(filepath.Separator)+"node_modules"+string(filepath.Separator))
			ofFolder := func(folder string) bool {
				return isIn(element, folder) && !isOfUser(element, c.home()) || isOfPackages && isIn(folder, project)
			}
			if !filepath.IsAbs(element) || slices.ContainsFunc(folders, ofFolder) {
				return true
			}
		}
	}
	return false
}

// isIn reports whether a path is a folder or in it. Nothing counts as in the root.
func isIn(path, folder string) bool {
	rest, err := filepath.Rel(folder, path)
	return err == nil && folder != filepath.Dir(folder) && filepath.IsLocal(rest)
}

// isOfUser reports whether an element of PATH is one of the user's own, such as ~/.local/bin: somebody who works in
// the home directory has it in PATH everywhere.
func isOfUser(element, home string) bool {
	rest, err := filepath.Rel(home, element)
	return home != "" && err == nil && (rest == "bin" || strings.HasPrefix(rest, ".") && filepath.IsLocal(rest))
}

// environment returns the variables of the process.
func (c Command) environment() []string {
	if c.Env == nil {
		return os.Environ()
	}
	return c.Env
}

// isNamed reports whether an argument may name something in a directory: as a whole, or a part of it.
func isNamed(dir, arg string) bool {
	if scheme.MatchString(arg) && !strings.HasPrefix(arg, "-") && strings.Contains(arg, "//") { // a URL
		return false
	}
	parts := append([]string{arg}, strings.FieldsFunc(arg, func(r rune) bool { return strings.ContainsRune("=,: ", r) })...)
	if len(arg) > 2 && arg[0] == '-' && arg[1] != '-' { // -cFILE
		parts = append(parts, arg[2:])
	}
	return slices.ContainsFunc(parts, func(part string) bool {
		return part != "" && !filepath.IsAbs(part) && exists(filepath.Join(dir, part))
	})
}

// choosesAbove reports whether a directory or one above it has what chooses code, or one of these packages.
func (c Command) choosesAbove(dir string, packages []string) bool {
	for at := dir; ; at = filepath.Dir(at) {
		if c.choosesIn(at, packages) {
			return true
		}
		if at == filepath.Dir(at) {
			return false
		}
	}
}

// isRelative reports whether an argument is a path that means another file in another directory.
func isRelative(arg string) bool {
	first, _, hasSlash := strings.Cut(filepath.ToSlash(arg), "/")
	switch {
	case arg == "." || arg == ".." || strings.HasPrefix(arg, "~"):
		return true
	case filepath.IsAbs(arg) || scheme.MatchString(arg) && !strings.HasPrefix(strings.ToLower(arg), "file:"):
		return false
	case strings.HasPrefix(arg, "@") && !strings.ContainsAny(arg, " ;&|") && strings.Count(arg, "/") == 1: // a package of npm
		return false
	}
	return hasSlash && !registry.MatchString(first)
}

// choosesIn reports whether a directory has a file that chooses code, or one of these packages.
func (c Command) choosesIn(dir string, packages []string) bool {
	for _, name := range choosers {
		if name == ".npmrc" && dir == c.home() { // the user's own, which counts in all directories
			continue
		}
		if exists(filepath.Join(dir, name)) {
			return true
		}
	}
	own := struct {
		Name string
		Bin  any
	}{}
	data, err := os.ReadFile(filepath.Join(dir, "package.json"))
	isPackage := err == nil
	odd := isPackage && json.Unmarshal(data, &own) != nil
	bins, _ := own.Bin.(map[string]any)
	for _, name := range packages {
		_, runs := bins[name]
		if isPackageIn(filepath.Join(dir, name)) || exists(filepath.Join(dir, name+".py")) ||
			exists(filepath.Join(dir, "node_modules", name)) || exists(filepath.Join(dir, "node_modules", ".bin", name)) ||
			isPackage && (odd || own.Name == name || runs) {
			return true
		}
	}
	return false
}

// home returns the home directory that the process has.
func (c Command) home() (home string) {
	for _, variable := range c.environment() {
		if value, ok := strings.CutPrefix(variable, "HOME="); ok {
			home = value
		}
	}
	return home
}

// isPackageIn reports whether a folder has a package.
func isPackageIn(dir string) bool {
	return slices.ContainsFunc([]string{"package.json", "pyproject.toml", "setup.py", "__init__.py"},
		func(name string) bool { return exists(filepath.Join(dir, name)) })
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil || !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR)
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}
