// Package buildinfo says which build of the program runs.
package buildinfo

import "runtime/debug"

// Module is the path of the project's module.
const Module = "github.com/mcp-sse/mcp-sse"

// NPMPackage is the name of the package on npm that starts this program. It is empty until one is published: anybody
// could take the name before, so no text tells people to run it. The linker sets it, as .goreleaser.yaml says, when
// the release workflow is about to publish the package.
var NPMPackage string

// Info is what is known of a build. Unknown parts are "unknown".
type Info struct{ Version, Revision, GoVersion string }

// Read returns what the Go toolchain has written into the program. It also
// finds the version when the project is a dependency of another program.
func Read() Info {
	info := Info{"unknown", "unknown", "unknown"}
	build, ok := debug.ReadBuildInfo()
	if !ok {
		return info
	}
	info.GoVersion = build.GoVersion
	for _, module := range append(build.Deps, &build.Main) {
		if module.Path == Module && module.Version != "" {
			info.Version = module.Version
		}
	}
	for _, setting := range build.Settings {
		if setting.Key == "vcs.revision" && build.Main.Path == Module {
			info.Revision = setting.Value
		}
	}
	return info
}
