package service

// Capability is a feature of a node that a service needs and that some nodes lack. If no node
// has it, the engine reports the service as unsupported, with Missing as the reason.
type Capability uint8

const (
	Registers Capability = iota + 1
	MemoryWriting
	Suspending
	ThreadControl
	NodeInformation
	Checkpointing
	Messages
)

var missing = [...]string{
	Registers:       "the node cannot access the registers of a thread",
	MemoryWriting:   "the node cannot write into the memory of a process",
	Suspending:      "the node cannot suspend threads independently of stopping them: use thread_stop and thread_continue",
	ThreadControl:   "the node can neither signal single threads nor change scheduling priorities",
	NodeInformation: "the node reports its name (flags 1); it cannot measure hardware and load",
	Checkpointing:   "the node cannot checkpoint processes; this requires CRIU",
	Messages:        "no message-passing platform provides queues",
}

// Missing explains what a node without the capability cannot do.
func (c Capability) Missing() string { return missing[c] }

// Without returns a copy of the catalog with another Support for some services, by name. The
// engine uses it for services that no node of the monitor can provide.
func (c *Catalog) Without(lacking map[string]Support) *Catalog {
	trimmed := &Catalog{services: make(map[string]*Service, len(c.services)), classes: c.classes}
	for _, t := range c.tables {
		rows := make([]Service, len(t.Services))
		for i := range t.Services {
			rows[i] = t.Services[i]
			if s, ok := lacking[rows[i].Name]; ok {
				rows[i].Support = s
			}
			trimmed.services[rows[i].Name] = &rows[i]
		}
		t.Services = rows
		trimmed.tables = append(trimmed.tables, t)
	}
	return trimmed
}

// LackOf returns the support of a service on nodes that lack its capability.
func (s *Service) LackOf() Support {
	if s.Needs == NodeInformation {
		return partly(s.Needs.Missing())
	}
	return unsupported(s.Needs.Missing())
}
