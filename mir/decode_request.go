package mir

func readSIRRequest(f *findings, root Element) Document {
	f.onlyOurs(root)
	request := &SIRRequest{Pos: root.Pos()}
	for child := range root.Children() {
		if !child.is("resource") {
			f.unexpected(child)
			continue
		}
		request.Resources = append(request.Resources, Resource{
			In: f.required(child, "in"), Out: optional(child, "out"), Pos: child.Pos(),
		})
	}
	if len(request.Resources) == 0 {
		f.add(root.Pos(), `<%s> names no program; write <resource in="file:///…"/> inside`, root.Name())
	}
	return request
}

// deepest is the largest number of frames that a request can ask for. A larger number means
// all frames, and is reduced to it.
const deepest = 1 << 20

func readSnapshotRequest(f *findings, root Element) Document {
	f.onlyOurs(root, "goroutines")
	request := &SnapshotRequest{Named: f.boolean(root, "named"), Goroutines: f.wish(root, "goroutines"), Pos: root.Pos()}
	if depth := f.integer(root, "stack", 0); depth != nil {
		request.Stack = int(min(*depth, deepest))
	}
	for child := range root.Children() {
		f.unexpected(child)
	}
	return request
}

func readInstrRequest(f *findings, root Element) Document {
	f.onlyOurs(root, "budget", "clock", "details", "key", "label", "lease", "note", "percentiles", "sample")
	request := &InstrRequest{
		Flush: f.boolean(root, "flush"), Activated: f.activated(root),
		Budget: f.budget(root), Fast: f.fast(root), OneIn: f.sample(root), Percentiles: f.percentiles(root), Lease: f.lease(root), Label: f.label(root), Key: f.key(root), Note: f.note(root), Details: f.wish(root, "details"), Pos: root.Pos(),
	}
	for child := range root.Children() {
		switch {
		case child.is("codeRegion"):
			if request.Region != nil {
				f.add(child.Pos(), "a second <codeRegion>; a request has one")
			}
			request.Region = f.region(child)
		case child.is("metric"):
			request.Metrics = append(request.Metrics, f.metric(child))
		case child.is("event"):
			request.Events++
		case child.is("measuring"):
			request.Measuring = f.measuring(child, request.Measuring)
		case isEntity(child):
			request.Entities = append(request.Entities, f.entity(child))
		default:
			f.unexpected(child)
		}
	}
	return request
}

// activated reads the attribute that is activated in the DTD of MIR 4 and activate in its
// text.
func (f *findings) activated(root Element) bool {
	long, isLong := f.stated(root, "activated")
	short, isShort := f.stated(root, "activate")
	if isLong && isShort && long != short {
		a, _ := root.Attribute("activate")
		f.add(a.Pos, "activate and activated contradict each other; write activated alone")
	}
	return long || short
}

func (f *findings) region(e Element) *CodeRegion {
	region := &CodeRegion{From: optional(e, "from"), To: optional(e, "to"), Pos: e.Pos()}
	if region.From == "" && region.To == "" {
		f.add(e.Pos(), `<codeRegion> has neither from nor to; write <codeRegion from="…"/> with the id of a unit`)
	}
	return region
}

func (f *findings) metric(e Element) Metric {
	return Metric{Name: f.required(e, "name"), Pos: e.Pos()}
}

// measuring reads the element; before is an earlier one of the same request, or nil.
func (f *findings) measuring(e Element, before *Measuring) *Measuring {
	if before != nil {
		f.add(e.Pos(), "a second <measuring>; a request has one")
	}
	m := &Measuring{
		Delivery: f.integer(e, "delivery", -1),
		Interval: f.integer(e, "interval", 0),
		Duration: f.integer(e, "duration", 0),
		Pos:      e.Pos(),
	}
	if a, ok := e.Attribute("destination"); ok {
		m.Destination = &a.Value
	}
	for child := range e.Children() {
		if !child.is("aggregate") {
			f.unexpected(child)
			continue
		}
		m.Aggregates = append(m.Aggregates, f.aggregate(child))
	}
	if f.saysNothing(e, m) {
		f.add(e.Pos(), "<measuring> is empty; give it interval, delivery, destination, duration or an <aggregate>")
	}
	return m
}

// saysNothing checks MIR 4: "a measuring element without attributes and without an aggregate
// element is invalid". An attribute with a bad value is a fault already, so it counts as
// present.
func (f *findings) saysNothing(e Element, m *Measuring) bool {
	for _, a := range e.Attributes() {
		if a.Space == "" {
			return false
		}
	}
	return len(m.Aggregates) == 0
}

func (f *findings) aggregate(e Element) Function {
	a, ok := e.Attribute("function")
	if !ok {
		return Last
	}
	choices := []Function{Average, Maximum, Minimum, Sum, Variance}
	function, ok := oneOf(a.Value, choices...)
	if !ok {
		f.add(a.Pos, "function is %s; it can be %s", Quote(a.Value), listed(choices))
	}
	return function
}

func readControlRequest(f *findings, root Element) Document {
	f.onlyOurs(root, "budget", "details", "lease")
	request := &ControlRequest{Flush: f.boolean(root, "flush"), Budget: f.budget(root), Lease: f.lease(root), Details: f.wish(root, "details"), Pos: root.Pos()}
	if a, ok := root.Attribute("action"); ok {
		f.act(request, a)
	}
	request.Probes = make([]ProbeRef, 0, root.count("probe"))
	for child := range root.Children() {
		switch {
		case child.is("probe"):
			request.Probes = append(request.Probes, f.probe(child))
		case child.is("action"):
			if f.required(child, "type") != "" {
				a, _ := child.Attribute("type")
				f.act(request, a)
			}
		case child.is("metric"):
			request.Metrics = append(request.Metrics, f.metric(child))
		case child.is("measuring"):
			request.Measuring = f.measuring(child, request.Measuring)
		case isEntity(child):
			request.Entities = append(request.Entities, f.entity(child))
		default:
			f.unexpected(child)
		}
	}
	f.complete(request, root)
	return request
}

// act takes the action, which MIR 5 writes both as an attribute and as an element. Both may be
// present if they agree.
func (f *findings) act(request *ControlRequest, a Attribute) {
	choices := []Action{Value, Activate, Deactivate, Reset, Remove}
	action, ok := oneOf(a.Value, choices...)
	switch {
	case !ok:
		f.add(a.Pos, "the action is %s; it can be %s", Quote(a.Value), listed(choices))
	case request.Action != "" && request.Action != action:
		f.add(a.Pos, "the action %s contradicts %s given before; a request has one", action, request.Action)
	default:
		request.Action = action
	}
}

func (f *findings) complete(request *ControlRequest, root Element) {
	if request.Action == "" && len(f.faults) == 0 {
		f.add(root.Pos(), `<ctrlreq> has no action; write <ctrlreq action="VALUE">`)
	}
	if len(request.Probes) == 0 {
		f.add(root.Pos(), `<ctrlreq> names no probe; write <probe id="…"/> inside`)
	}
}
