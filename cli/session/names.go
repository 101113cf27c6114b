package session

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	gateway "mirador/http"
	"mirador/omis"
)

// names contains what a session may name: services, and the tokens in the replies so far. Its
// methods may be called from any goroutine.
type names struct {
	ask func(context.Context) ([]gateway.Service, error)

	mu       sync.Mutex
	services []gateway.Service // asked for once
	tokens   map[omis.Token]bool
}

func (n *names) table(ctx context.Context) ([]gateway.Service, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.services == nil {
		rows, err := n.ask(ctx)
		if err != nil {
			return nil, err
		}
		n.services = rows
	}
	return n.services, nil
}

// saw records the tokens of a reply. It removes a deleted request and objects that the monitor does
// not know any more.
func (n *names) saw(r omis.Reply) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.tokens == nil {
		n.tokens = make(map[omis.Token]bool)
	}
	for _, service := range r {
		for _, o := range service {
			gone := o.Status == omis.CSRDeleted || o.Status == omis.UnknownObject
			for _, t := range o.Objects {
				n.note(t, gone)
			}
			n.noteAll(o.Values, gone)
		}
	}
}

// forgetObjects removes nodes, processes and threads. The caller then asks for the current ones.
func (n *names) forgetObjects() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for t := range n.tokens {
		switch t.Class() {
		case omis.ClassNode, omis.ClassProcess, omis.ClassThread:
			delete(n.tokens, t)
		}
	}
}

func (n *names) noteAll(values []omis.Value, gone bool) {
	for _, v := range values {
		if v.Kind == omis.KindToken {
			n.note(v.Token(), gone)
		}
		n.noteAll(v.List, gone)
	}
}

func (n *names) note(t omis.Token, gone bool) {
	switch {
	case gone:
		delete(n.tokens, t)
	case t != omis.Undefined:
		n.tokens[t] = true
	}
}

// known returns the recorded tokens.
func (n *names) known() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	list := make([]string, 0, len(n.tokens))
	for t := range n.tokens {
		list = append(list, string(t))
	}
	slices.SortFunc(list, naturally)
	return list
}

// naturally orders t_9 before t_10.
func naturally(a, b string) int {
	if c := strings.Compare(class(a), class(b)); c != 0 {
		return c
	}
	if len(a) != len(b) {
		return len(a) - len(b)
	}
	return strings.Compare(a, b)
}

func class(token string) string { return string(omis.Token(token).Class()) }

// help describes the given services, or names all services if none is given.
func (n *names) help(ctx context.Context, wanted []string) (string, error) {
	rows, err := n.table(ctx)
	if err != nil {
		return "", err
	}
	if len(wanted) == 0 {
		return overview(rows), nil
	}
	var b strings.Builder
	for _, name := range wanted {
		i := slices.IndexFunc(rows, func(s gateway.Service) bool { return s.Name == name })
		if i < 0 {
			return "", fmt.Errorf("there is no service %s", name)
		}
		s := &rows[i]
		fmt.Fprintf(&b, "%s\n  %s\n  %s, support %s, for callers with the role %s\n", s.Prototype, s.Doc, s.Kind, s.Support, s.Role)
		if s.Local {
			b.WriteString("  may run where its event is recognised\n")
		}
	}
	return b.String(), nil
}

// overview names all services, grouped by kind.
func overview(rows []gateway.Service) string {
	var b strings.Builder
	b.WriteString("A request is: [EVENT(…)] : ACTION(…) … ; \"help SERVICE\" tells what a service does.\n")
	for _, kind := range []string{"event", "information", "manipulation"} {
		fmt.Fprintf(&b, "%s services:\n", kind)
		for _, s := range rows {
			if s.Kind == kind {
				fmt.Fprintf(&b, "  %s\n", s.Name)
			}
		}
	}
	return b.String()
}
