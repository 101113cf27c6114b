package service

import (
	"fmt"
	"strings"

	"mirador/omis"
)

// Prototype returns the service in the notation of the specification.
func (s *Service) Prototype() string {
	result := s.Result
	if result == "" {
		result = "void"
	}
	params := make([]string, len(s.Params))
	for i, p := range s.Params {
		params[i] = p.String()
	}
	return fmt.Sprintf("%s %s(%s)", result, s.Name, strings.Join(params, ", "))
}

// Reference returns the text of doc/omis-services.md.
func (c *Catalog) Reference() string {
	var b strings.Builder
	b.WriteString("# Services\n\n")
	b.WriteString("This page is generated from the table of services by `make generate`; a test compares it.\n\n")
	b.WriteString("OMIS: **R** required, **P** partially required, **O** optional. Role: the permission that a caller needs.\n")
	b.WriteString("A *local* action may run where its event is recognised. Support is that of a Linux node.\n")
	for _, t := range c.tables {
		for _, group := range groups(t) {
			writeGroup(&b, t, group)
		}
	}
	return b.String()
}

// groups returns the classes under which the services of a table are listed, in the table's
// order.
func groups(t Table) []omis.Class {
	var list []omis.Class
	seen := make(map[omis.Class]bool)
	for i := range t.Services {
		if c := t.Services[i].Class; !seen[c] {
			seen[c] = true
			list = append(list, c)
		}
	}
	return list
}

func writeGroup(b *strings.Builder, t Table, class omis.Class) {
	fmt.Fprintf(b, "\n## %s\n\n", title(t, class))
	b.WriteString("| service | kind | OMIS | role | support | on Linux |\n| --- | --- | --- | --- | --- | --- |\n")
	for i := range t.Services {
		s := &t.Services[i]
		if s.Class != class {
			continue
		}
		kind := s.Kind.String()
		if s.Local {
			kind += ", local"
		}
		fmt.Fprintf(b, "| `%s`<br>%s%s | %s | %c | %s | %s | %s |\n",
			s.Prototype(), s.Doc, contextText(s), kind, s.Need, s.Role, supportText(s.Support), s.Linux)
	}
}

func title(t Table, class omis.Class) string {
	name := map[omis.Class]string{
		omis.ClassNode: "Nodes", omis.ClassProcess: "Processes", omis.ClassThread: "Threads",
		omis.ClassMessage: "Messages and message queues", omis.ClassCSR: "Conditional requests",
		omis.ClassUserEvent: "User defined events",
	}[class]
	switch {
	case name != "":
		return fmt.Sprintf("%s (`%s_`)", name, class)
	case class != "":
		return fmt.Sprintf("Extension `%s`: `%s_`", t.Prefix, class)
	case t.Prefix != "":
		return fmt.Sprintf("Extension `%s`: miscellaneous", t.Prefix)
	}
	return "Miscellaneous"
}

// contextText lists an event's own context parameters.
func contextText(s *Service) string {
	var names []string
	for _, p := range s.Context {
		names = append(names, "`$"+p.Name+"`")
	}
	if s.OpenContext {
		names = append(names, "`$par1`", "`$par2` …")
	}
	if names == nil {
		return ""
	}
	return "; gives " + strings.Join(names, ", ")
}

func supportText(s Support) string {
	if s.Level == Full {
		return "full"
	}
	return s.Level.String() + ": " + s.Reason
}
