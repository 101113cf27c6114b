package engine

import (
	"fmt"
	"slices"

	"mirador/omis"
	"mirador/omis/service"
)

// object is what a token stands for. Objects are compared by identity.
type object interface {
	Token() omis.Token
}

// ident is the token of an object and its number, by which objects are ordered.
type ident struct {
	token omis.Token
	num   int
}

func (i ident) Token() omis.Token { return i.token }

type node struct {
	ident
	name string
}

// process is a process of the node. Its token lives as long as it does, whoever
// is attached to it.
type process struct {
	ident
	id    omis.ProcID
	queue *queue // executes the action lists of its events, in order

	tools  int                 // attached to it; guarded by Engine.admin
	points map[pointKey]*point // guarded by Engine.admin
	ended  bool                // guarded by registry.mu
}

type thread struct {
	ident
	proc *process
	tid  int
}

// item is an object of a class that an extension added.
type item struct {
	ident
	class *service.Class
	tool  *Tool
	value any
}

// userEvent is a user defined event (OMIS 8.2.2).
type userEvent struct {
	ident
	tool *Tool
}

// sortObjects orders objects of one class by the numbers of their tokens.
func sortObjects(list []object) {
	slices.SortFunc(list, func(a, b object) int { return number(a) - number(b) })
}

func number(o object) int {
	switch o := o.(type) {
	case *node:
		return o.num
	case *process:
		return o.num
	case *thread:
		return o.num
	case *item:
		return o.num
	case *userEvent:
		return o.num
	case *csr:
		return o.num
	}
	return 0
}

func tokenOf(c omis.Class, num int) omis.Token { return omis.Token(fmt.Sprintf("%s_%d", c, num)) }
