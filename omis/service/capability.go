package service

// Capability is what a service needs of a node beyond what every node can do. The
// engine asks its nodes for it; where none has it, the service is unsupported and
// Missing is the reason.
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
	Registers:       "the node gives no access to the registers of a thread",
	MemoryWriting:   "the node cannot write into the memory of a process",
	Suspending:      "the node cannot hold a thread apart from stopping it: use thread_stop and thread_continue",
	ThreadControl:   "the node cannot signal single threads nor change scheduling priorities",
	NodeInformation: "the node reports its name (flags 1); it has no probes for hardware and load",
	Checkpointing:   "the node cannot checkpoint processes; it would take CRIU",
	Messages:        "no message-passing platform provides queues",
}

// Missing says what is the matter where no node has the capability.
func (c Capability) Missing() string { return missing[c] }

// Without returns a catalog in which the support of some services is another, by
// their names: what the nodes of this monitor cannot do.
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

// LackOf is the support of a service on nodes that lack its capability.
func (s *Service) LackOf() Support {
	if s.Needs == NodeInformation {
		return partly(s.Needs.Missing())
	}
	return unsupported(s.Needs.Missing())
}
