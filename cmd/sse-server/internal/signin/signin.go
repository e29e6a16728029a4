package signin

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/browser"
	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/config"
	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/exit"
	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/plaintext"
	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/terminal"
	"github.com/mcp-sse/mcp-sse/internal/login"
)

// Command is what the commands take from the program.
type Command struct {
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	LookupEnv      func(string) (string, bool)
	Signals        <-chan os.Signal // that end a login
}

// fail prints why a command has failed, and returns the exit code.
func (cmd *Command) fail(err error) int {
	fmt.Fprintf(cmd.Stderr, "sse-server: %s\n", plaintext.Visible(err.Error()))
	return exit.Failure
}

// interruptible returns a context that ends with a signal, which interrupted then returns.
func (cmd *Command) interruptible() (ctx context.Context, interrupted func() os.Signal, stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	caught := make(chan os.Signal, 1)
	go func() { // ends with ctx
		select {
		case sig := <-cmd.Signals:
			caught <- sig
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, func() os.Signal {
		select {
		case sig := <-caught:
			caught <- sig // for whoever asks again
			return sig
		default:
			return nil
		}
	}, cancel
}

// Login logs in at the server that c means, and returns the exit code.
func (cmd *Command) Login(c *config.Config) int {
	server, err := c.LoginServer()
	if err != nil {
		return exit.Refuse(cmd.Stderr, err)
	}
	secret, err := readSecret(c.LogIn.ClientSecret)
	if err != nil {
		return exit.Refuse(cmd.Stderr, fmt.Errorf("%s: %w", c.Place("client-secret"), err))
	}
	ctx, interrupted, stop := cmd.interruptible()
	defer stop()
	remote := server.Remote()
	fmt.Fprintf(cmd.Stderr, "Asking %s what it wants …\n", remote.Place())
	attempt, err := login.Begin(ctx, login.Options{
		Server: remote.Address, Header: remote.Header, Store: login.NewStore(c.StateDir),
		ClientID: c.LogIn.ClientID, ClientSecret: secret, Issuer: c.LogIn.Issuer, Scopes: c.LogIn.Scope,
		NoResource: c.LogIn.NoResource, Port: int(c.LogIn.Port), Confirm: cmd.confirm(ctx),
		ConfirmElsewhere: cmd.confirmElsewhere(ctx), EndpointHosts: c.LogIn.EndpointHost,
		DocumentURL: c.DocumentURL(server),
	})
	switch {
	case interrupted() != nil:
		return cmd.givenUp(interrupted())
	case errors.Is(err, login.ErrNoLogin):
		fmt.Fprintf(cmd.Stdout, "No login is needed: %v.\n", err)
		return exit.OK
	case err != nil:
		return cmd.fail(err)
	}
	defer attempt.Close()
	waiting, cancel := context.WithTimeout(ctx, login.Patience)
	defer cancel()
	fmt.Fprintf(cmd.Stdout, "Logging in at %s, by %s, as %s.\n", remote.Place(), plaintext.Visible(attempt.Issuer()),
		attempt.ClientText())
	cmd.ask(waiting, attempt, c.LogIn.NoBrowser)
	done, err := attempt.Wait(waiting)
	switch {
	case interrupted() != nil:
		return cmd.givenUp(interrupted())
	case err != nil:
		return cmd.fail(err)
	}
	fmt.Fprintf(cmd.Stdout, "Logged in at %s, by %s. %s\n", plaintext.Visible(done.Public()),
		plaintext.Visible(attempt.Issuer()), sentences(done))
	return exit.OK
}

func (cmd *Command) givenUp(sig os.Signal) int {
	fmt.Fprintln(cmd.Stderr, "sse-server: the login was given up")
	return exit.BySignal(sig)
}

// maxSecret bounds the secret of a client, in bytes.
const maxSecret = 4096

// readSecret returns what is in a file; empty for none.
func readSecret(path string) (string, error) {
	if path == "" {
		return "", nil
	}
	data, err := os.ReadFile(path)
	secret := strings.TrimSpace(string(data))
	if err == nil && (secret == "" || len(secret) > maxSecret) {
		err = fmt.Errorf("want a file with the secret of the client, of at most %d bytes", maxSecret)
	}
	return secret, err
}

// confirm returns what asks the person whether to log in at an issuer of another site; nil: nobody can be asked.
func (cmd *Command) confirm(ctx context.Context) func(server, issuer string) bool {
	return cmd.question(ctx, "The server %s has its tokens from %s, which is another site.\nLog in there? [y/N] ")
}

// confirmElsewhere returns what asks the person whether to log in with an issuer that names addresses of another site;
// nil: nobody can be asked.
func (cmd *Command) confirmElsewhere(ctx context.Context) func(issuer, addresses string) bool {
	return cmd.question(ctx, "The issuer %s names addresses of another site: %s.\n"+
		"It gets what you allow there. Do both belong together? [y/N] ")
}

// question returns what asks the person a question with two texts, whose answer is no at the end of ctx; nil: nobody
// can be asked.
func (cmd *Command) question(ctx context.Context, format string) func(first, second string) bool {
	file, isFile := cmd.Stdin.(*os.File)
	if !isFile || !terminal.Is(file) {
		return nil
	}
	return func(first, second string) bool {
		fmt.Fprintf(cmd.Stdout, format, plaintext.Visible(first), plaintext.Visible(second))
		answer := make(chan string, 1)
		go func() { // ends with a line, or with the program: a terminal cannot be interrupted
			line, _ := bufio.NewReader(file).ReadString('\n')
			answer <- line
		}()
		select {
		case line := <-answer:
			return terminal.IsYes(line)
		case <-ctx.Done():
			fmt.Fprintln(cmd.Stdout)
			return false
		}
	}
}

// ask brings the person to the issuer: in a browser here, or else by an address to open elsewhere, and, if the issuer
// has that, by a code on another device. The first that is done makes the login.
func (cmd *Command) ask(ctx context.Context, attempt *login.Attempt, noBrowser bool) {
	if !noBrowser && browser.IsThere(cmd.LookupEnv) {
		if err := browser.Open(cmd.LookupEnv, attempt.BrowserAddress()); err == nil {
			fmt.Fprintf(cmd.Stdout, "Your browser opens for the login. If it does not, open this address within %s:"+
				"\n\n  %s\n\n", login.PatienceText, attempt.Link())
			return
		}
	}
	if attempt.HasDevice() {
		if code, err := attempt.Device(ctx); err != nil {
			cmd.sayNoCode(err)
		} else {
			fmt.Fprintf(cmd.Stdout, "Open this address on any device, and type the code %s there:\n\n  %s\n\nOr:\n",
				code.Code, plaintext.Visible(code.Address))
			go func() { // ends with ctx
				if err := attempt.AwaitDevice(ctx, code); err != nil {
					cmd.sayNoCode(err)
				}
			}()
		}
	}
	fmt.Fprintf(cmd.Stdout, "Open this address in a browser, on any machine, within %s:\n\n  %s\n\n"+
		"At the end the browser goes to an address that begins with %s. On another machine that page does not load, "+
		"which is fine: copy its address.\nPaste it here:\n", login.PatienceText, attempt.Link(), attempt.Redirect())
	go cmd.readPasted(ctx, attempt) // ends with a login, or with the program: stdin cannot be interrupted
}

func (cmd *Command) sayNoCode(err error) {
	fmt.Fprintf(cmd.Stderr, "sse-server: no code for another device: %s\n", plaintext.Visible(err.Error()))
}

// readPasted takes lines until one is the address of the login.
func (cmd *Command) readPasted(ctx context.Context, attempt *login.Attempt) {
	lines := bufio.NewScanner(cmd.Stdin)
	for lines.Scan() {
		if strings.TrimSpace(lines.Text()) == "" {
			continue
		}
		err := attempt.Paste(ctx, lines.Text())
		select {
		case <-attempt.Ended():
			return
		default:
		}
		if err != nil {
			fmt.Fprintf(cmd.Stdout, "%s\nPaste it here:\n", plaintext.Visible(err.Error()))
		}
	}
}

// sentences say which scopes a login has, and how long it lasts.
func sentences(l *login.Login) string {
	text := "Scopes: " + scopesOf(l) + "."
	for _, one := range lasting(l, time.Now()) {
		text += " " + capital(one) + "."
	}
	return text
}

func capital(text string) string { return strings.ToUpper(text[:1]) + text[1:] }

func scopesOf(l *login.Login) string {
	return plaintext.Visible(cmp.Or(strings.Join(l.Scopes, " "), "those that the issuer has chosen"))
}

const minute = "2006-01-02 15:04"

// lasting says how long a login lasts.
func lasting(l *login.Login, now time.Time) []string {
	until := l.Expiry.Local().Format(minute)
	const renewed = "it is renewed as needed"
	switch {
	case !l.Ended.IsZero():
		return []string{"the issuer has ended it on " + l.Ended.Local().Format(minute)}
	case l.Refresh != "" && l.Expiry.IsZero():
		return []string{renewed}
	case l.Refresh != "" && now.Before(l.Expiry):
		return []string{"its token is good until " + until, renewed}
	case l.Refresh != "":
		return []string{"its token was good until " + until, renewed}
	case !l.Expiry.IsZero():
		return []string{"it lasts until " + until + ", as the issuer gives nothing to renew it with"}
	}
	return []string{"the issuer does not say how long it lasts"}
}

// Logout ends the login at the server that c means, and returns the exit code.
func (cmd *Command) Logout(c *config.Config) int {
	server, err := c.LoginServer()
	if err != nil {
		return exit.Refuse(cmd.Stderr, err)
	}
	at, err := login.Canonical(server.Remote().Address)
	if err != nil {
		return exit.Refuse(cmd.Stderr, err)
	}
	store := login.NewStore(c.StateDir)
	ctx, _, stop := cmd.interruptible()
	defer stop()
	if c.LogOut.Principal != "" {
		return cmd.logoutPrincipal(ctx, c, at.String())
	}
	code, found := cmd.logoutUnusable(ctx, store, at.String())
	for {
		l, _, err := store.Newest(at.String())
		if err != nil {
			return cmd.fail(err)
		}
		if l == nil {
			break
		}
		found = true
		revoked, err := login.Logout(ctx, store, l)
		notTold, isNotTold := errors.AsType[*login.NotToldError](err)
		switch {
		case ctx.Err() != nil:
			return exit.Failure
		case revoked && err == nil:
			fmt.Fprintf(cmd.Stdout, "Logged out of %s: %s has ended the login.\n", plaintext.Visible(l.Public()),
				plaintext.Visible(l.Issuer))
		case isNotTold: // nothing is left to do here
			fmt.Fprintf(cmd.Stdout, "Logged out of %s here. %s.\n", plaintext.Visible(l.Public()),
				plaintext.Visible(notTold.Error()))
		case err == nil:
			fmt.Fprintf(cmd.Stdout, "Logged out of %s. The issuer has no way to be told: its token is good until it "+
				"expires.\n", plaintext.Visible(l.Public()))
		default:
			code = cmd.fail(fmt.Errorf("the login at %s: %w", l.Public(), err))
		}
		if still, _, _ := store.Newest(at.String()); still != nil && still.Issuer == l.Issuer {
			return exit.Failure // it cannot be deleted
		}
	}
	if !found {
		fmt.Fprintf(cmd.Stdout, "Nobody is logged in at %s.\n", server.Remote().Place())
	}
	own, _ := login.OfPrincipals(c.StateDir)
	for _, one := range own {
		if one.Server == login.Name(at.String()) {
			fmt.Fprintf(cmd.Stdout, "The principal %s has a login of its own there, which --principal ends.\n",
				plaintext.Visible(one.Principal))
		}
	}
	return code
}

// logoutPrincipal ends the logins that a principal of gateways has at a server.
func (cmd *Command) logoutPrincipal(ctx context.Context, c *config.Config, server string) (code int) {
	all, err := login.OfPrincipals(c.StateDir)
	if err != nil {
		return cmd.fail(err)
	}
	found := false
	for _, one := range all {
		if one.Server != login.Name(server) || one.Principal != c.LogOut.Principal {
			continue
		}
		found = true
		revoked, err := one.Logout(ctx, login.SealingKey(c.IDKey))
		if errors.Is(err, login.ErrOtherKey) && c.LogOut.Forget {
			err = one.Forget(ctx)
		}
		notTold, isNotTold := errors.AsType[*login.NotToldError](err)
		who, where := plaintext.Visible(one.Principal), plaintext.Visible(one.Server)
		switch {
		case errors.Is(err, login.ErrOtherKey):
			code = cmd.fail(fmt.Errorf("the login of %s at %s stays: %w: want the key of its gateway, with "+
				"--id-key-file FILE, or with the name of the server and --config FILE; or, to delete it alone, "+
				"--forget",
				one.Principal, one.Server, err))
		case isNotTold:
			fmt.Fprintf(cmd.Stdout, "%s is logged out of %s here. %s.\n", who, where,
				plaintext.Visible(notTold.Error()))
		case err != nil:
			code = cmd.fail(fmt.Errorf("the login of %s at %s: %w", one.Principal, one.Server, err))
		case revoked:
			fmt.Fprintf(cmd.Stdout, "%s is logged out of %s: %s has ended the login.\n", who, where,
				plaintext.Visible(one.Issuer))
		default:
			fmt.Fprintf(cmd.Stdout, "%s is logged out of %s. The issuer was not told: its token is good until it "+
				"expires.\n", who, where)
		}
	}
	if !found {
		fmt.Fprintf(cmd.Stdout, "%s is not logged in at %s.\n", plaintext.Visible(c.LogOut.Principal),
			plaintext.Visible(login.Name(server)))
	}
	return code
}

// logoutUnusable ends logins whose files are not used, such as one that other users can read: they may have its tokens.
func (cmd *Command) logoutUnusable(ctx context.Context, store login.Store, server string) (code int, found bool) {
	all, err := store.Unusable(server)
	if err != nil {
		return cmd.fail(err), false
	}
	for _, one := range all {
		fmt.Fprintf(cmd.Stderr, "sse-server: warning: %s\n", plaintext.Visible(one.Why.Error()))
		revoked, err := login.LogoutUnusable(ctx, one)
		switch {
		case err != nil:
			code = cmd.fail(err)
		case revoked:
			fmt.Fprintf(cmd.Stdout, "Deleted %s: %s has ended the login.\n", plaintext.Visible(one.Path),
				plaintext.Visible(one.Login.Issuer))
		default:
			fmt.Fprintf(cmd.Stdout, "Deleted %s. The issuer was not told: its token may be good until it expires.\n",
				plaintext.Visible(one.Path))
		}
	}
	return code, len(all) > 0
}

// entry is a login as logins --json prints it.
type entry struct {
	Server string `json:"server"`
	Issuer string `json:"issuer"`
	// Principal and Page are those of a login that a principal of a gateway has for itself, whose rest is sealed.
	Principal string     `json:"principal,omitempty"`
	Page      string     `json:"page,omitempty"`
	Scopes    []string   `json:"scopes"`
	LoggedIn  time.Time  `json:"loggedIn"`
	Expiry    *time.Time `json:"tokenExpires,omitempty"`
	Renewed   bool       `json:"isRenewed"`
	Ended     *time.Time `json:"ended,omitempty"`
	LastUse   *time.Time `json:"lastUse,omitempty"`
}

// Logins lists the logins, and returns the exit code.
func (cmd *Command) Logins(c *config.Config) int {
	store := login.NewStore(c.StateDir)
	all, problems := store.All()
	entries := []entry{}
	for _, l := range all {
		used := store.LastUse(l)
		entries = append(entries, entry{Server: login.Name(l.Server), Issuer: l.Issuer, LoggedIn: l.At,
			Scopes: append([]string{}, l.Scopes...), Expiry: orNil(l.Expiry), Renewed: l.Refresh != "",
			Ended: orNil(l.Ended), LastUse: orNil(used)})
		if c.Logins.JSON {
			continue
		}
		fmt.Fprintf(cmd.Stdout, "%s\n  by %s since %s; scopes: %s\n  %s; %s\n", plaintext.Visible(login.Name(l.Server)),
			plaintext.Visible(l.Issuer), l.At.Local().Format(minute), scopesOf(l),
			strings.Join(lasting(l, time.Now()), "; "), useText(used))
	}
	own, err := login.OfPrincipals(c.StateDir)
	problems = errors.Join(problems, err)
	for _, one := range own {
		entries = append(entries, entry{Server: one.Server, Issuer: one.Issuer, Principal: one.Principal,
			Page: one.Page, Scopes: []string{}, LoggedIn: one.At, LastUse: orNil(one.LastUse)})
		if !c.Logins.JSON {
			fmt.Fprintf(cmd.Stdout, "%s\n  of the principal %s, at %s\n  by %s since %s; %s\n",
				plaintext.Visible(one.Server), plaintext.Visible(one.Principal), plaintext.Visible(one.Page),
				plaintext.Visible(one.Issuer), one.At.Local().Format(minute), useText(one.LastUse))
		}
	}
	switch {
	case c.Logins.JSON:
		data, _ := json.MarshalIndent(entries, "", "  ") // never fails
		fmt.Fprintf(cmd.Stdout, "%s\n", data)
	case len(entries) == 0 && problems == nil:
		fmt.Fprintln(cmd.Stdout, "Nobody is logged in anywhere: sse-server login URL")
	}
	if problems != nil {
		return cmd.fail(problems)
	}
	return exit.OK
}

// useText says when a login was last used.
func useText(at time.Time) string {
	if at.IsZero() {
		return "never used"
	}
	return "last used " + at.Local().Format(minute)
}

func orNil(at time.Time) *time.Time {
	if at.IsZero() {
		return nil
	}
	return &at
}
