package engine

import (
	"context"

	"mirador/omis"
)

// toolScope is the service.Scope of an extension's event source.
type toolScope struct{ t *Tool }

func (s toolScope) Add(c omis.Class, value any) omis.Token { return s.t.addItem(c, value) }
func (s toolScope) Remove(t omis.Token)                    { s.t.removeItem(t) }

func (s toolScope) Request(ctx context.Context, text string) (omis.Reply, error) {
	return s.t.nested(ctx, text, nil)
}
