package request

import (
	"fmt"
	"slices"
	"strings"

	"mirador/mir"
	"mirador/mir/translate"
)

// reader collects the limits of a file and what is wrong with it.
type reader struct {
	file   *File
	faults []mir.Fault
}

func (r *reader) fault(pos mir.Position, format string, args ...any) {
	r.faults = append(r.faults, mir.Fault{Pos: pos, Msg: fmt.Sprintf(format, args...)})
}

const example = `<g:gate xmlns:g="` + Namespace + `"> with <instrreq> elements inside`

func (r *reader) root(e mir.Element) {
	if e.Space() != Namespace || e.Name() != "gate" {
		r.fault(e.Pos(), "<%s> is no gate; write %s", e.Tag(), example)
		return
	}
	for child := range e.Children() {
		switch {
		case child.Space() == "" && child.Name() == "instrreq":
			r.instrumentation(child)
		case child.Space() == Namespace && child.Name() == "benchmark":
			r.benchmark(child)
		default:
			r.fault(child.Pos(), "<%s> is not allowed in a gate; write <instrreq>, or <g:benchmark> for a Go benchmark", child.Tag())
		}
	}
	if len(r.file.Limits) == 0 && len(r.faults) == 0 {
		r.fault(e.Pos(), `the gate has no limits; write some, such as <metric name="COUNT" g:max="1000"/>`)
	}
}

// unknown records the attributes of an element that have no meaning here.
func (r *reader) unknown(e mir.Element, plain, ours []string) {
	for _, a := range e.Attributes() {
		if a.Space == "" && !slices.Contains(plain, a.Name) || a.Space == Namespace && !slices.Contains(ours, a.Name) ||
			a.Space == mir.GatewayNamespace && a.Name != "clock" {
			r.fault(a.Pos, "%s has no meaning in <%s> of a gate", a.Name, e.Name())
		}
	}
	if e.HasText() {
		r.fault(e.Pos(), "<%s> contains text; limits are attributes", e.Name())
	}
}

func ofSpace(e mir.Element, space, name string) (mir.Attribute, bool) {
	for _, a := range e.Attributes() {
		if a.Space == space && a.Name == name {
			return a, true
		}
	}
	return mir.Attribute{}, false
}

// instrumentation reads a request. A gate chooses the entities, the intervals and when the probes
// are set, so the elements and attributes for these are refused.
func (r *reader) instrumentation(e mir.Element) {
	r.unknown(e, nil, nil)
	shared := Limit{Fast: r.fast(e), Request: len(r.file.Metrics)}
	metrics := 0
	for child := range e.Children() {
		switch {
		case child.Space() == "" && child.Name() == "codeRegion":
			if shared.Region != "" || shared.To != "" {
				r.fault(child.Pos(), "a second <codeRegion>; a request has one")
			}
			r.unknown(child, []string{"from", "to"}, nil)
			shared.Region, shared.To = value(child, "from"), value(child, "to")
			if shared.Region == "" {
				r.fault(child.Pos(), `<codeRegion> names no function; write <codeRegion from="program:function"/>`)
			}
		case child.Space() == "" && child.Name() == "metric":
			metrics++
		default:
			r.fault(child.Pos(), "<%s> is not allowed here: a gate measures whole programs; write <codeRegion> and <metric>", child.Tag())
		}
	}
	if metrics == 0 {
		r.fault(e.Pos(), `<instrreq> has no metric; write <metric name="COUNT" g:max="1000"/>`)
	}
	r.file.Metrics = append(r.file.Metrics, metrics)
	for child := range e.Children() {
		if child.Space() == "" && child.Name() == "metric" {
			r.metric(child, shared)
			shared.Index++
		}
	}
}

func (r *reader) fast(e mir.Element) bool {
	a, ok := ofSpace(e, mir.GatewayNamespace, "clock")
	if ok && a.Value != "fast" && a.Value != "ordered" {
		r.fault(a.Pos, "clock is %s; it can be ordered or fast", mir.Quote(a.Value))
	}
	return a.Value == "fast"
}

func value(e mir.Element, name string) string {
	a, _ := e.Attribute(name)
	return a.Value
}

// metric reads the limits of a metric: an assertion for its own value, and one for its change.
func (r *reader) metric(e mir.Element, l Limit) {
	r.unknown(e, []string{"name"}, []string{"max", "min", "exact", "max-change", "of"})
	l.Metric, l.Pos = value(e, "name"), e.Pos()
	row, ok := find(l.Metric, l.Region != "")
	if !ok {
		r.fault(l.Pos, `there is no metric %s; "mirador catalog" lists them`, mir.Quote(l.Metric))
		return
	}
	if row.Unavailable != "" {
		r.fault(l.Pos, "%s is not available: %s", l.Metric, row.Unavailable)
	}
	if !row.Alone && l.Region == "" {
		r.fault(l.Pos, "%s needs a region; add <codeRegion> to the request", l.Metric)
	}
	if l.Region != "" && row.Kind == "counter" && row.Alone && l.Metric != "COUNT" {
		r.fault(l.Pos, "%s of a region contains what the probe itself does, and is not exact: measure it for the whole program, in a request without <codeRegion>", l.Metric)
	}
	l.Unit, l.Kind = row.Unit, Exact
	if row.Unit == "ms" {
		l.Kind = Absolute
	}
	faults := len(r.faults)
	r.limits(e, &l, row)
	if len(r.faults) > faults {
		return
	}
	r.add(l, e)
}

// add appends the assertions of a metric. The change of a time is an assertion of its own.
func (r *reader) add(l Limit, e mir.Element) {
	if l.Min == nil && l.Max == nil && !l.Compared() {
		r.fault(l.Pos, `%s has no limit; write g:max, g:min, g:exact or g:max-change`, l.Metric)
		return
	}
	if l.Kind == Exact {
		l.Text = written(e, "exact", "min", "max", "max-change")
		r.file.append(l)
		return
	}
	if l.Min != nil || l.Max != nil {
		own := l
		own.Limited, own.Change, own.Text = false, 0, written(e, "min", "max", "of")
		r.file.append(own)
	}
	if l.Limited {
		l.Kind, l.Min, l.Max, l.Text = Relative, nil, nil, written(e, "max-change", "of")
		r.file.append(l)
	}
}

// written returns limits as they are in the file.
func written(e mir.Element, names ...string) string {
	var list []string
	for _, name := range names {
		if a, ok := ofSpace(e, Namespace, name); ok {
			list = append(list, name+" "+strings.TrimSpace(a.Value))
		}
	}
	return strings.Join(list, ", ")
}

// find returns the row of the catalog for a metric, which may have the name of a system call
// behind a colon.
func find(name string, region bool) (found translate.Metric, ok bool) {
	plain, _, _ := strings.Cut(name, ":")
	for _, m := range translate.Catalog() {
		if (m.Name == plain || m.Name == name) && (!ok || m.Alone != region) {
			found, ok = m, true
		}
	}
	return found, ok
}
