package mir

// is reports whether e is an element of MIR with that name.
func (e Element) is(name string) bool {
	n := e.node()
	return n.name == name && n.space == ""
}

// count returns the number of children of e that are elements of MIR with that name.
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

// entity reads an entity and the entities inside it. The scanner has limited the depth of the
// recursion.
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
		case entity.Kind == Process && child.isGateway("goroutine"):
			entity.Goroutines = append(entity.Goroutines, f.goroutine(child))
		default:
			f.unexpected(child)
		}
	}
	return entity
}

func (f *findings) goroutine(e Element) Goroutine {
	g := Goroutine{ID: f.required(e, "id"), State: f.required(e, "state"), Reason: optional(e, "reason"), Thread: optional(e, "thread")}
	for child := range e.Children() {
		if child.isGateway("stack") {
			g.Stack = append(g.Stack, child.Text())
		} else {
			f.unexpected(child)
		}
	}
	return g
}
