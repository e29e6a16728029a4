package main

import (
	"cmp"
	"context"
	"net/http"
	"strings"
	"time"

	systemd "github.com/coreos/go-systemd/v22/daemon"

	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/background"
	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/config"
	"github.com/mcp-sse/mcp-sse/gateway"
	"github.com/mcp-sse/mcp-sse/internal/httpanswer"
	"github.com/mcp-sse/mcp-sse/internal/login"
)

// reloadPath is the route that reloads the configuration.
const reloadPath = "/-/reload"

// Each of these asks for a reload.
const (
	bySignal = "SIGHUP"
	byWatch  = "watch"
)

// reload loads the configuration again and puts it in the place of the one in use, which
// stays on an error. Reloads run one after the other, and none once the daemon stops.
func (d *daemon) reload(ctx context.Context, by string) error {
	select {
	case d.turn <- struct{}{}:
		defer func() { <-d.turn }()
	case <-ctx.Done():
		return ctx.Err()
	}
	d.audit.Reopen()
	next, err := d.load(d.config.Load())
	if next != nil { // also if a file is missing, which may come
		d.follow(next)
	}
	if err == nil && by == byWatch && d.fault == "" && next.IsRead(d.config.Load()) {
		return nil
	}
	before := d.config.Load()
	notify(d.log, systemd.SdNotifyReloading)
	defer notify(d.log, systemd.SdNotifyReady)
	if err == nil {
		err = d.apply(next)
	}
	if err != nil {
		if by != byWatch || err.Error() != d.fault {
			d.log.Error("configuration not reloaded; the previous one stays in effect", "by", by, "err", err)
		}
		d.fault = err.Error()
		d.metrics.Refused()
		return err
	}
	d.fault = ""
	d.metrics.Loaded(next.Hash())
	d.log.Info("configuration reloaded", "by", by,
		"changed", cmp.Or(strings.Join(before.Changes(next), ", "), "nothing"))
	return nil
}

// apply puts next in the place of the configuration in use. It checks all before it changes
// anything. The caller has the turn.
func (d *daemon) apply(next *config.Config) error {
	if err := d.config.Load().CheckChange(next); err != nil {
		return err
	}
	next.KeepResources(d.config.Load())
	for _, e := range d.endpoints { // sockets of systemd too
		if next.Insecure || e.Option == background.SharedOption {
			continue
		}
		if err := next.CheckExposure(e.Option, config.Addr(e.Addr().String())); err != nil {
			return err
		}
	}
	if err := d.replaceGateways(next); err != nil {
		return err
	}
	d.starts.Forget()
	for _, warning := range next.Warnings {
		d.log.Warn("configuration warning", "warning", warning)
	}
	_ = d.level.UnmarshalText([]byte(next.LogLevel)) // has been checked
	before := d.config.Load()
	d.setConfig(next)
	byOAuth := len(next.OAuth) > 0 && next.SamePrincipals(before) // else the same text may be somebody else
	known := map[string]bool{"": next.Tokens == nil && !byOAuth}
	for _, principal := range next.Tokens {
		known[principal] = true
	}
	for _, s := range next.Endpoints() {
		d.gateways[s.Name].Revoke(func(principal string) bool { // those of the issuer are authenticated again
			isKnown := known[principal] || byOAuth && login.IsOfIssuer(principal)
			return !isKnown || !s.MayUse(principal)
		})
	}
	d.forgetPrincipals(next)
	d.gw.Start()
	return nil
}

// forgetUnused is forgetPrincipals between reloads.
func (d *daemon) forgetUnused(ctx context.Context) {
	select {
	case d.turn <- struct{}{}:
		defer func() { <-d.turn }()
		d.forgetPrincipals(d.config.Load())
	case <-ctx.Done():
	}
}

// revokeTimeout bounds what issuers are told at one reload, or start.
const revokeTimeout = 10 * time.Second

// forgetPrincipals deletes what is kept of the logins of principals that are no more, and tells their issuers after
// that.
func (d *daemon) forgetPrincipals(c *config.Config) {
	gone, err := c.ForgetPrincipals()
	for _, one := range gone {
		d.log.Info("login of a principal forgotten: it is no more, may not use the server, or has not used the login",
			"principal", one.Principal)
	}
	if err != nil {
		d.log.Warn("login of a principal not forgotten", "err", err)
	}
	d.retiring.Go(func() { // ends with revokeTimeout
		ctx, cancel := context.WithTimeout(context.Background(), revokeTimeout)
		defer cancel()
		for _, one := range gone {
			if err := one.Revoke(ctx); err != nil {
				d.log.Warn("login of a principal not ended by its issuer", "principal", one.Principal, "err", err)
			}
		}
	})
}

// retire shuts down a gateway that no longer serves. shutDown waits for it, and abort ends it at
// once.
func (d *daemon) retire(gw *gateway.Gateway) {
	d.retired.Store(gw, nil)
	d.retiring.Go(func() {
		defer d.retired.Delete(gw)
		ctx, cancel := context.WithTimeout(context.Background(), d.grace())
		defer cancel()
		if err := gw.Shutdown(ctx); err != nil {
			d.log.Warn("shutdown timeout, streams were cut", "err", err, "timeout", d.grace())
		}
	})
}

// serveReload reloads the configuration, and answers with the faults if there are any.
func (d *daemon) serveReload(w http.ResponseWriter, r *http.Request) {
	out := httpanswer.New(w, r, httpanswer.FormJSON, 0) // before the reload, which may take long
	code, answer := http.StatusOK, map[string]any{"status": "reloaded"}
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		code, answer = http.StatusMethodNotAllowed, map[string]any{"status": "use POST"}
	} else if err := d.reload(r.Context(), reloadPath); err != nil {
		code, answer = http.StatusUnprocessableEntity,
			map[string]any{"status": "refused", "faults": strings.Split(err.Error(), "\n")}
	}
	out.Value(code, answer)
}
