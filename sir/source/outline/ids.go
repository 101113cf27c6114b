package outline

import (
	"cmp"
	"path"
	"strconv"
	"strings"

	"mirador/sir"
)

// scope is a unit or a loop: the ids of the regions inside begin with its id.
type scope struct {
	id    string
	used  map[string]int // numbers of names
	outer *scope         // around a loop
}

func (s *scope) count(name string) int {
	if s.used == nil {
		s.used = map[string]int{}
	}
	s.used[name]++
	return s.used[name]
}

// choice is a region whose parts are branches.
type choice struct {
	id   string
	used map[string]int
}

// branch returns the id of a part. Parts of the form case, else if and catch are numbered.
func (c *choice) branch(form string) string {
	form = strings.ReplaceAll(form, " ", "")
	if c.used == nil {
		c.used = map[string]int{}
	}
	c.used[form]++
	switch n := c.used[form]; {
	case form == "case" || form == "elseif" || form == "catch":
		return c.id + "." + form + strconv.Itoa(n)
	case n > 1: // in a text with errors
		return c.id + "." + form + "~" + strconv.Itoa(n)
	}
	return c.id + "." + form
}

// repeated returns the id of a region whose name others may have.
func (s *scope) repeated(name string) string {
	if i := s.count(name); i > 1 {
		name += "~" + strconv.Itoa(i)
	}
	return s.id + "/" + name
}

// code returns the id of a region inside a unit, as in the structures of binaries.
func (a *around) code(n *Node, s *scope) string {
	switch n.Kind {
	case sir.Body:
		return s.repeated("body")
	case sir.Call:
		return s.repeated("call." + cmp.Or(n.CalleeSymbol, n.Callee))
	case sir.Branch, sir.Catch, sir.Finally:
		if form := n.Form; a.choice != nil {
			if n.Kind != sir.Branch {
				form = string(n.Kind)
			}
			return a.choice.branch(form)
		}
	}
	return s.id + "/" + string(n.Kind) + strconv.Itoa(s.count(string(n.Kind)))
}

// unit returns the id of a unit. It is that of sir/binary for the same function: the symbol, with the
// name of the file if several files have a static function of the name.
func (b *builder) unit(n *Node, s *scope) string {
	if n.symbol() == "" {
		id := s.id
		if id == "" {
			id = b.program + ":"
		} else {
			id += "/"
		}
		return id + string(n.Kind) + strconv.Itoa(s.count(string(n.Kind)))
	}
	id := b.program + ":" + n.symbol()
	if n.Static && b.symbols[n.symbol()] > 1 {
		id += "~" + path.Base(b.file.Path)
	}
	b.used[id]++
	for i := b.used[id]; i > 1; i++ {
		next := id + "~" + strconv.Itoa(i)
		if b.used[next] == 0 {
			b.used[id] = i
			b.used[next]++
			return next
		}
	}
	return id
}
