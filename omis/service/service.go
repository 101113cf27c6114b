package service

import (
	"mirador/omis"
	"mirador/omis/node"
)

// Kind is the kind of a service (OMIS 5.1).
type Kind uint8

const (
	Manipulation Kind = iota + 1
	Information
	Event
)

func (k Kind) String() string {
	switch k {
	case Manipulation:
		return "manipulation"
	case Information:
		return "information"
	case Event:
		return "event"
	}
	return "unknown"
}

// Need is whether OMIS requires a service of every monitor: required, partially required,
// or optional.
type Need byte

const (
	Required          Need = 'R'
	PartiallyRequired Need = 'P'
	Optional          Need = 'O'
)

// Role is the permission that a caller needs for a service. A higher role includes the lower
// ones.
type Role uint8

const (
	Read    Role = iota + 1 // read information, disturbing the program only while reading
	Control                 // attach, instrument, stop, continue
	Debug                   // change the program: memory, registers, signals, launch
)

func (r Role) String() string {
	switch r {
	case Read:
		return "read"
	case Control:
		return "control"
	case Debug:
		return "debug"
	}
	return "none"
}

// Level is the extent to which a service is supported.
type Level uint8

const (
	Full Level = iota + 1
	Partial
	Unsupported
)

func (l Level) String() string {
	switch l {
	case Full:
		return "full"
	case Partial:
		return "partial"
	case Unsupported:
		return "unsupported"
	}
	return "unknown"
}

// Support is the extent to which a service is supported. If it is not fully supported, Reason
// tells the user what is missing.
type Support struct {
	Level  Level
	Reason string
}

// Type is the type of a parameter (OMIS 7.2.2).
type Type uint8

const (
	Integer Type = iota + 1
	Floating
	String
	Binary
	Token
	Any
)

func (t Type) String() string {
	switch t {
	case Integer:
		return "integer"
	case Floating:
		return "floating"
	case String:
		return "string"
	case Binary:
		return "binary"
	case Token:
		return "token"
	case Any:
		return "any"
	}
	return "unknown"
}

// Param is a parameter of a service, or an event context parameter.
type Param struct {
	Name  string
	Type  Type
	List  bool
	Class omis.Class // of a token; "": any class
}

func (p Param) String() string {
	s := p.Type.String()
	if p.List {
		s += "*"
	}
	return s + " " + p.Name
}

// Service is a row of the table: the declaration of a service, and in an extension also its
// implementation.
type Service struct {
	Name  string
	Class omis.Class // the class under which OMIS lists it; "": miscellaneous
	Kind  Kind
	Need  Need

	// Object is the class of the objects that the service works on, "" if there are none. The
	// first parameter of that class names the objects.
	Object omis.Class
	Params []Param
	Result string // the type in the notation of the specification

	// Context has the event's own context parameters (OMIS 7.2.4). With OpenContext these are
	// par1, par2 …, as many as the occurrence has.
	Context     []Param
	OpenContext bool

	// Local tells that the action needs only the event itself, and neither blocks nor calls
	// the node. So it may run where the event is recognised.
	Local   bool
	Role    Role
	Needs   Capability // of the node; 0: every node can do it
	Support Support
	Doc     string
	Linux   string // how a Linux node implements it, and its limitations

	// An extension implements its services in the following fields. The engine implements the
	// basic services.
	Action  Action         // of a manipulation or information service
	Compile Compile        // of a Local action that can be a step of programs; else nil
	Collect Collect        // of an information service that can read many objects together; else nil
	Source  Source         // of an event service that detects its events itself
	Event   node.EventKind // of an event service whose events nodes detect
}

// Subject returns the index of the parameter that names the objects of the service, -1 if
// there is none.
func (s *Service) Subject() int {
	if s.Object == "" {
		return -1
	}
	for i := range s.Params {
		if s.Params[i].Type == Token && s.Params[i].Class == s.Object {
			return i
		}
	}
	return -1
}

// Void reports whether the service returns only a status.
func (s *Service) Void() bool { return s.Result == "" || s.Result == "void" }

// Standard returns the context parameters of every event (OMIS 7.2.4).
func Standard() []Param {
	return []Param{
		{Name: "node", Type: Token, Class: omis.ClassNode},
		{Name: "proc", Type: Token, Class: omis.ClassProcess},
		{Name: "thread", Type: Token, Class: omis.ClassThread},
		{Name: "time", Type: Floating},
		{Name: "csr", Type: Token, Class: omis.ClassCSR},

		// Two extensions: how the thread is held until the list is done, and for how many
		// seconds it has been held so far.
		{Name: "held", Type: String},
		{Name: "held_for", Type: Floating},
	}
}
