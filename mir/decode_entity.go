package mir

// is tells whether this is one of MIR's own elements with that name.
func (e Element) is(name string) bool {
	n := e.node()
	return n.name == name && n.space == ""
}

// count is how many elements of MIR's with that name stand directly inside.
func (e Element) count(name string) (n int) {
	for child := range e.Children() {
		if child.is(name) {
			n++
		}
	}
	return n
}

func isEntity(e Element) bool {
	if e.Space() != "" {
		return false
	}
	switch EntityKind(e.Name()) {
	case Site, Node, Communicator, Process, Thread:
		return true
	}
	return false
}

// entity reads an entity with those inside it. How deep they nest, the scan has
// bounded.
func (f *findings) entity(e Element) Entity {
	entity := Entity{
		Kind:   EntityKind(e.Name()),
		ID:     f.required(e, "id"),
		Name:   optional(e, "name"),
		Master: f.boolean(e, "master"),
		Pos:    e.Pos(),
	}
	for child := range e.Children() {
		switch {
		case isEntity(child):
			entity.Children = append(entity.Children, f.entity(child))
		case child.is("stack"):
			entity.Stack = append(entity.Stack, child.Text())
		default:
			f.unexpected(child)
		}
	}
	return entity
}
