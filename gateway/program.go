package gateway

import (
	"context"
	"encoding/json"
	"time"

	"github.com/mcp-sse/mcp-sse/handshake"
	"github.com/mcp-sse/mcp-sse/internal/forprogram"
	"github.com/mcp-sse/mcp-sse/internal/remember"
)

// init opens to the program what package forprogram promises: a function for each Gateway or Servers that it is given.
func init() {
	forprogram.Provide(forprogram.Functions{
		Of: func(gw any) forprogram.Gateway { return program{gw.(*Gateway)} },
		Abort: func(service any) {
			all := []*Gateway(nil)
			if servers, are := service.(*Servers); are {
				all = servers.list()
			} else {
				all = []*Gateway{service.(*Gateway)}
			}
			for _, g := range all {
				g.now.Load().supplier.Abort()
			}
		},
		OptionsOf: func(of any) *forprogram.Options { return &of.(*Options).program },
	})
}

// program is a gateway as the program sees it; forprogram.Gateway says what its methods do.
type program struct{ g *Gateway }

func (p program) now() *serving { return p.g.now.Load() }

func (p program) Try(ctx context.Context) (handshake.Found, error) { return p.now().supplier.Try(ctx) }

func (p program) CheckStart(ctx context.Context) (handshake.Found, error) {
	return p.now().supplier.CheckStart(ctx)
}

func (p program) Saying() (words, advice string) {
	supplier := p.now().supplier
	return supplier.Saying(), supplier.Advice()
}

func (p program) Warm() (n int, always bool) {
	o := p.g.supply(p.now())
	return o.Warm, !o.WarmFollowsUse
}

func (p program) Remembers() bool { return p.now().memory != nil }

func (p program) RemembersFor(params json.RawMessage) bool {
	memory := p.now().memory
	client, plain := remember.ClientOf(params, remember.Principal(""))
	return memory != nil && plain && memory.Answers(client) != nil
}

func (p program) Remembered() (handshake.Found, bool) { return p.now().supplier.Remembered() }

func (p program) Learn(ctx context.Context, params json.RawMessage) error {
	if !p.Remembers() || p.RemembersFor(params) {
		return nil
	}
	return p.now().supplier.Learn(ctx, params, remember.Principal(""))
}

func (p program) WantsAnyFolder() bool { return p.now().supplier.WantsAnyFolder() }

func (p program) ReserveAnyFolder() (release func(), ok bool) {
	if n := p.now(); n.anyFolder != nil {
		return n.locks.Reserve()
	}
	return nil, false
}

func (p program) LearnInAnyFolder(ctx context.Context) (isUsed bool) {
	return p.now().supplier.LearnInAnyFolder(ctx)
}

func (p program) UseServer() (release func()) { return p.now().locks.Use() }

func (p program) AwaitUnused(ctx context.Context, quiet time.Duration) error {
	return p.now().locks.AwaitUnused(ctx, quiet)
}
