package service

import (
	"fmt"
	"sort"
	"strings"

	"mirador/omis"
	"mirador/omis/syntax"
)

// Table has the services of the basic specification, or of one extension.
type Table struct {
	Prefix   string // "": the basic services
	Services []Service
	Classes  []omis.Class
}

// Catalog has all services that a monitor knows. It is immutable.
type Catalog struct {
	tables   []Table
	services map[string]*Service
	classes  map[omis.Class]bool
}

// NewCatalog joins the basic table and the tables of extensions. It refuses two extensions with
// the same prefix, and names that do not begin with the prefix (OMIS 6.2).
func NewCatalog(tables ...Table) (*Catalog, error) {
	c := &Catalog{services: make(map[string]*Service), classes: make(map[omis.Class]bool)}
	for _, t := range append([]Table{Basic()}, tables...) {
		if err := c.add(t); err != nil {
			return nil, err
		}
	}
	return c, nil
}

func (c *Catalog) add(t Table) error {
	if len(c.tables) > 0 {
		if err := c.checkPrefix(t); err != nil {
			return err
		}
	}
	for i := range t.Services {
		s := &t.Services[i]
		if c.services[s.Name] != nil {
			return fmt.Errorf("cannot add service %s twice", s.Name)
		}
		c.services[s.Name] = s
	}
	for _, class := range t.Classes {
		c.classes[class] = true
	}
	c.tables = append(c.tables, t)
	return nil
}

func (c *Catalog) checkPrefix(t Table) error {
	if t.Prefix == "" || strings.Contains(t.Prefix, "_") {
		return fmt.Errorf("cannot add an extension with the prefix %q: it must be a name without underscore", t.Prefix)
	}
	// "thread" would differ from all names, but is the beginning of many.
	for name := range c.services {
		if strings.HasPrefix(name, t.Prefix+"_") {
			return fmt.Errorf("cannot add an extension with the prefix %q: service %s begins with it", t.Prefix, name)
		}
	}
	for _, other := range c.tables {
		if other.Prefix == t.Prefix {
			return fmt.Errorf("cannot add two extensions with the prefix %q", t.Prefix)
		}
	}
	for i := range t.Services {
		if !strings.HasPrefix(t.Services[i].Name, t.Prefix+"_") {
			return fmt.Errorf("cannot add service %s: it does not begin with %q, the prefix of its extension", t.Services[i].Name, t.Prefix+"_")
		}
	}
	for _, class := range t.Classes {
		own, ok := strings.CutPrefix(string(class), t.Prefix+"_")
		if !ok || len(own) != 1 {
			return fmt.Errorf("cannot add token class %q: it must be %s_ and one letter", class, t.Prefix)
		}
	}
	return nil
}

// Lookup returns a service, nil if there is none with that name.
func (c *Catalog) Lookup(name string) *Service { return c.services[name] }

// HasClass reports whether the class of tokens exists.
func (c *Catalog) HasClass(class omis.Class) bool { return c.classes[class] }

// Tables returns the basic table, followed by the tables of the extensions.
func (c *Catalog) Tables() []Table { return c.tables }

// Prefixes returns the sorted prefixes of the extensions.
func (c *Catalog) Prefixes() []string {
	var ps []string
	for _, t := range c.tables[1:] {
		ps = append(ps, t.Prefix)
	}
	sort.Strings(ps)
	return ps
}

// Supported returns the fully and the partially supported services of an extension ("": the
// basic services). ok is false if there is no such extension.
func (c *Catalog) Supported(prefix string) (full, partial []string, ok bool) {
	for _, t := range c.tables {
		if t.Prefix != prefix {
			continue
		}
		for i := range t.Services {
			switch t.Services[i].Support.Level {
			case Full:
				full = append(full, t.Services[i].Name)
			case Partial:
				partial = append(partial, t.Services[i].Name)
			}
		}
		return full, partial, true
	}
	return nil, nil, false
}

// RoleOf returns the highest role that the services of a request require. Unknown services
// require none, because the request fails anyway.
func (c *Catalog) RoleOf(r *omis.Request) Role {
	role := Read
	if r.Event != nil {
		role = Control
	}
	for i := range r.Actions {
		if s := c.services[r.Actions[i].Service]; s != nil {
			role = max(role, s.Role)
		}
	}
	return role
}

// Nearest returns the service with the most similar name, "" if no name is similar.
func (c *Catalog) Nearest(name string) string {
	best, bestDistance := "", len(name)/3+2
	for other := range c.services {
		d := syntax.Distance(name, other, bestDistance)
		if d < bestDistance || d == bestDistance && best != "" && other < best {
			best, bestDistance = other, d
		}
	}
	return best
}
