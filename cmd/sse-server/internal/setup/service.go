package setup

import (
	"crypto/sha256"
	"encoding/xml"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/config"
	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/exit"
	"github.com/mcp-sse/mcp-sse/internal/atomicfile"
	"github.com/mcp-sse/mcp-sse/internal/environ"
)

// System is what the command service takes from the system.
type System struct {
	OS         string // as runtime.GOOS
	Program    string // the path of this program
	Run        func(name string, args ...string) (output string, err error)
	SocketOf   func(*config.Config) (string, error)
	ConfigHome string // of the user
}

// exitError is the error of a command that has ended with a code.
type exitError interface {
	error
	ExitCode() int // -1 if a signal has ended it
}

// service is the shared sse-server of a file, which the system starts with the user's session and keeps.
type service struct {
	program, file, socket, path, log string
}

// manager is how a system has services of a user.
type manager struct {
	// file is the file of the service, and text what it has.
	file string
	text func(service) string
	// install and uninstall are the commands that make the system know the file, and forget it; status says how it is.
	install, uninstall [][]string
	status             []string
	untried            bool // nobody has tried it on such a system
}

const (
	unitName  = "sse-server.service"
	agentName = "io.github.mcp-sse.sse-server"
	taskName  = "sse-server"
)

// mark is in the first lines of each file of a service that install has written. uninstall removes no other.
const mark = "Written by sse-server service install; sse-server service uninstall removes it."

// hasMark reports whether install has written a file with this text: its first line has the mark, or the one after the
// declaration of XML, which must be the first.
func hasMark(text string) bool {
	first, rest, _ := strings.Cut(text, "\n")
	if strings.HasPrefix(first, "<?xml") {
		first, _, _ = strings.Cut(rest, "\n")
	}
	return strings.Contains(first, mark)
}

// sealed returns the text of a file with its seal behind the mark.
func sealed(text string) string { return strings.Replace(text, mark, mark+sealOf(text), 1) }

// sealOf returns a hash of a text that has none yet: uninstall sees by it whether somebody has edited the file.
func sealOf(text string) string { return fmt.Sprintf(" sha256:%x", sha256.Sum256([]byte(text))) }

// isAsWritten reports whether a file is as install has written it.
func isAsWritten(text string) bool {
	before, after, _ := strings.Cut(text, mark)
	seal := after[:min(len(after), len(sealOf("")))]
	return seal == sealOf(before+mark+after[len(seal):])
}

// managerOf returns the manager of services of a system.
func (cmd *Command) managerOf(c *config.Config, on System) (manager, error) {
	switch on.OS {
	case "linux":
		return manager{
			file: filepath.Join(on.ConfigHome, "systemd", "user", unitName), text: unit,
			install: [][]string{
				{"systemctl", "--user", "daemon-reload"}, {"systemctl", "--user", "enable", "--now", unitName},
			},
			uninstall: [][]string{{"systemctl", "--user", "disable", "--now", unitName}},
			status:    []string{"systemctl", "--user", "status", "--no-pager", unitName},
		}, nil
	case "darwin":
		file := filepath.Join(cmd.home(), "Library", "LaunchAgents", agentName+".plist")
		domain := fmt.Sprintf("gui/%d", os.Getuid())
		return manager{
			file: file, text: propertyList, untried: true,
			install:   [][]string{{"launchctl", "bootstrap", domain, file}},
			uninstall: [][]string{{"launchctl", "bootout", domain + "/" + agentName}},
			status:    []string{"launchctl", "print", domain + "/" + agentName},
		}, nil
	case "windows":
		file := filepath.Join(c.StateDir, "sse-server-task.xml")
		return manager{
			file: file, text: task, untried: true,
			install: [][]string{
				{"schtasks", "/Create", "/TN", taskName, "/XML", file}, {"schtasks", "/Run", "/TN", taskName},
			},
			uninstall: [][]string{{"schtasks", "/Delete", "/TN", taskName, "/F"}},
			status:    []string{"schtasks", "/Query", "/TN", taskName, "/V", "/FO", "LIST"},
		}, nil
	}
	return manager{}, fmt.Errorf("service: nothing is known of services on %s", on.OS)
}

// Service installs the shared sse-server of a file as a service of this user, removes it, or says how it is, and
// returns the exit code.
func (cmd *Command) Service(c *config.Config, on System) int {
	m, err := cmd.managerOf(c, on)
	if err == nil && c.StateDir == "" {
		err = errors.New("service: neither STATE_DIRECTORY nor HOME is set: there is no place for its socket")
	}
	if err != nil {
		return exit.Refuse(cmd.Stderr, err)
	}
	switch c.Service.Do {
	case "install":
		return cmd.installService(c, on, m)
	case "uninstall":
		return cmd.uninstallService(on, m)
	}
	if _, err := os.Lstat(m.file); err != nil {
		fmt.Fprintf(cmd.Stdout,
			"There is no service: %s is missing. sse-server service install --config FILE makes it.\n", m.file)
		return exit.Failure
	}
	output, err := on.Run(m.status[0], m.status[1:]...)
	fmt.Fprint(cmd.Stdout, output)
	cmd.tellLingering(on)
	if exited, is := errors.AsType[exitError](err); is && exited.ExitCode() > 0 {
		return exited.ExitCode() // such as 3 of systemctl: it does not run
	}
	if err != nil {
		fmt.Fprintf(cmd.Stderr, "sse-server: %s: %v\n", strings.Join(m.status, " "), err)
		return exit.Failure
	}
	return exit.OK
}

// installService writes the file of the service, and lets the system start it.
func (cmd *Command) installService(c *config.Config, on System, m manager) int {
	if err := lasts(on.Program); err != nil {
		return exit.Refuse(cmd.Stderr, err)
	}
	file, err := filepath.Abs(c.Config)
	if err != nil {
		return exit.Refuse(cmd.Stderr, err)
	}
	socket, err := on.SocketOf(c)
	if err != nil {
		return exit.Refuse(cmd.Stderr, err)
	}
	path, _ := cmd.LookupEnv("PATH")
	s := service{on.Program, file, socket, environ.LastingPath(path), filepath.Join(c.StateDir, "service.log")}
	text := sealed(m.text(s))
	was, err := os.ReadFile(m.file)
	switch {
	case err == nil && !hasMark(string(was)):
		fmt.Fprintf(cmd.Stderr, "sse-server: %s is there already, and is not of service install: move it away first\n",
			m.file)
		return exit.Failure
	case err == nil && !isAsWritten(string(was)):
		fmt.Fprintf(cmd.Stderr, "sse-server: %s is there already, and was edited after service install: %s\n", m.file,
			m.byHand())
		return exit.Failure
	case err == nil && string(was) != text:
		fmt.Fprintf(cmd.Stderr,
			"sse-server: %s is there already, and differs: sse-server service uninstall removes it\n", m.file)
		return exit.Failure
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return exit.Refuse(cmd.Stderr, err)
	}
	for _, variable := range c.References() {
		if !environ.IsOfLogin(variable) {
			fmt.Fprintf(cmd.Stderr, "sse-server: %s refers to the variable %s, which a service does not get from a "+
				"shell: put it into an env-file, or into the environment of your session\n", file, variable)
		}
	}
	if err := os.MkdirAll(filepath.Dir(m.file), 0o755); err != nil {
		return exit.Refuse(cmd.Stderr, err)
	}
	if err := atomicfile.Write(m.file, []byte(text)); err != nil {
		return exit.Refuse(cmd.Stderr, err)
	}
	fmt.Fprintf(cmd.Stdout, "Written: %s\n", m.file)
	if !cmd.runAll(on, m.install) {
		return exit.Failure
	}
	fmt.Fprintf(cmd.Stdout, "The service serves %s to entries with \"stdio --connect --config %s\", at a socket of "+
		"this user.\n", file, file)
	if m.untried {
		fmt.Fprintln(cmd.Stdout, "Nobody has tried services on this system yet: please say whether it works.")
	}
	cmd.tellLingering(on)
	return exit.OK
}

// uninstallService makes the system forget the service, and removes its file. One that install has not written, or that
// somebody has edited since, stays, and so does its service.
func (cmd *Command) uninstallService(on System, m manager) int {
	if _, err := os.Lstat(m.file); err != nil {
		fmt.Fprintf(cmd.Stderr, "sse-server: there is no service: %s is missing\n", m.file)
		return exit.Failure
	}
	text, err := os.ReadFile(m.file)
	if err != nil || !hasMark(string(text)) {
		fmt.Fprintf(cmd.Stderr, "sse-server: %s is not of service install: nothing is stopped or removed; "+
			"do it yourself if it shall go\n", m.file)
		return exit.Failure
	}
	if !isAsWritten(string(text)) {
		fmt.Fprintf(cmd.Stderr, "sse-server: %s was edited after service install: nothing is stopped or removed; %s\n",
			m.file, m.byHand())
		return exit.Failure
	}
	known := cmd.runAll(on, m.uninstall)
	if err := os.Remove(m.file); err != nil {
		return exit.Refuse(cmd.Stderr, err)
	}
	fmt.Fprintf(cmd.Stdout, "Removed: %s. Clients start the shared sse-server themselves now.\n", m.file)
	if !known {
		return exit.Failure
	}
	return exit.OK
}

// byHand says how to remove a service whose file somebody has edited.
func (m manager) byHand() string {
	var commands []string
	for _, command := range m.uninstall {
		commands = append(commands, strings.Join(command, " "))
	}
	return "keep what you need of it, run " + strings.Join(commands, " and ") + ", and delete the file"
}

// runAll runs commands of the system until one fails, which it says.
func (cmd *Command) runAll(on System, all [][]string) bool {
	for _, command := range all {
		if output, err := on.Run(command[0], command[1:]...); err != nil {
			fmt.Fprintf(cmd.Stderr, "sse-server: %s: %v\n%s", strings.Join(command, " "), err, output)
			return false
		}
	}
	return true
}

// tellLingering says whether the service outlives the session of its user.
func (cmd *Command) tellLingering(on System) {
	if on.OS != "linux" {
		return
	}
	output, err := on.Run("loginctl", "show-user", "--property=Linger", "--value", fmt.Sprint(os.Getuid()))
	if strings.TrimSpace(output) == "yes" {
		fmt.Fprintln(cmd.Stdout, "Lingering is on: it runs from the start of the machine on.")
		return
	}
	state := "off"
	if err != nil {
		state = "not known"
	}
	fmt.Fprintf(cmd.Stdout, "Lingering is %s: without it the service ends when you log out. To switch it on:\n\n"+
		"    loginctl enable-linger\n\n", state)
}

// lasts returns an error if a program is at a place from which it goes by itself.
func lasts(program string) error {
	const instead = "put sse-server where it stays, such as ~/.local/bin, and run service install from there"
	slashed := filepath.ToSlash(program)
	switch {
	case !filepath.IsAbs(program):
		return fmt.Errorf("service: the path of this program is not known: %s", instead)
	case strings.Contains(slashed, "/_npx/"), strings.Contains(slashed, "/node_modules/"):
		return fmt.Errorf("service: %s is in a folder of npx or npm, which a clean-up empties: %s", program, instead)
	case strings.Contains(slashed, "/go-build"), isBelow(os.TempDir(), program), isBelow("/var/tmp", program):
		return fmt.Errorf("service: %s is in a temporary folder: %s", program, instead)
	}
	return nil
}

// isBelow reports whether a file is below a folder.
func isBelow(folder, file string) bool {
	path, err := filepath.Rel(folder, file)
	return err == nil && filepath.IsLocal(path)
}

// args are the arguments of the service. Clients compare the file with theirs, so it is watched.
func (s service) args() []string {
	return []string{"--shared=" + s.socket, "--of-file", "--config=" + s.file, "--watch", "--no-start-check"}
}

// unit is that of systemd. It has no secret: these are in the files that the file names.
func unit(s service) string {
	var words []string
	for _, word := range append([]string{s.program}, s.args()...) {
		words = append(words, inCommand(word))
	}
	return fmt.Sprintf(`# %s
[Unit]
Description=MCP gateway of this user
Documentation=https://github.com/mcp-sse/mcp-sse

[Service]
Type=notify
ExecStart=%s
ExecReload=/bin/kill -HUP $MAINPID
WorkingDirectory=%s
Environment=%s
Restart=on-failure
RestartSec=2s
RestartPreventExitStatus=2
KillMode=mixed
TimeoutStopSec=30s

[Install]
WantedBy=default.target
`, mark, strings.Join(words, " "), strings.ReplaceAll(filepath.Dir(s.file), "%", "%%"), inUnit("PATH="+s.path))
}

// inUnit returns a word as a unit has it.
func inUnit(word string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "%", "%%").Replace(word) + `"`
}

// inCommand returns a word of the command of a unit, in which $ begins a variable.
func inCommand(word string) string { return strings.ReplaceAll(inUnit(word), "$", "$$") }

// inXML returns a text as XML has it.
func inXML(text string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(text)) // to memory
	return b.String()
}

// propertyList is that of launchd.
func propertyList(s service) string {
	var words strings.Builder
	for _, word := range append([]string{s.program}, s.args()...) {
		fmt.Fprintf(&words, "\t\t<string>%s</string>\n", inXML(word))
	}
	return fmt.Sprintf(`<?xml version="1.0" encoding="UTF-8"?>
<!-- %s -->
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0">
<dict>
	<key>Label</key>
	<string>%s</string>
	<key>ProgramArguments</key>
	<array>
%s	</array>
	<key>WorkingDirectory</key>
	<string>%s</string>
	<key>EnvironmentVariables</key>
	<dict>
		<key>PATH</key>
		<string>%s</string>
	</dict>
	<key>RunAtLoad</key>
	<true/>
	<key>KeepAlive</key>
	<dict>
		<key>SuccessfulExit</key>
		<false/>
	</dict>
	<key>StandardErrorPath</key>
	<string>%s</string>
</dict>
</plist>
`, mark, agentName, words.String(), inXML(filepath.Dir(s.file)), inXML(s.path), inXML(s.log))
}

// task is that of the scheduler of Windows.
func task(s service) string {
	var words []string
	for _, word := range s.args() {
		if strings.ContainsAny(word, " \t") {
			word = `"` + word + `"`
		}
		words = append(words, word)
	}
	return fmt.Sprintf(`<?xml version="1.0" encoding="UTF-8"?>
<!-- %s -->
<Task version="1.2" xmlns="http://schemas.microsoft.com/windows/2004/02/mit/task">
  <Triggers>
    <LogonTrigger><Enabled>true</Enabled></LogonTrigger>
  </Triggers>
  <Settings>
    <MultipleInstancesPolicy>IgnoreNew</MultipleInstancesPolicy>
    <DisallowStartIfOnBatteries>false</DisallowStartIfOnBatteries>
    <StopIfGoingOnBatteries>false</StopIfGoingOnBatteries>
    <ExecutionTimeLimit>PT0S</ExecutionTimeLimit>
    <RestartOnFailure><Interval>PT1M</Interval><Count>10</Count></RestartOnFailure>
  </Settings>
  <Actions>
    <Exec>
      <Command>%s</Command>
      <Arguments>%s</Arguments>
      <WorkingDirectory>%s</WorkingDirectory>
    </Exec>
  </Actions>
</Task>
`, mark, inXML(s.program), inXML(strings.Join(words, " ")), inXML(filepath.Dir(s.file)))
}
