package mir

import (
	"fmt"
	"slices"
)

// Decompress returns the tuples of a measurement document. Each request has the ProbeID,
// Metrics, Functions and Entities of the last request that defined a probe; the result has
// the same values with the Tuples of the document. A value that the document does not
// have is "". Decompress is the inverse of encoding a Measured, except that this drops the ids of
// entities inside those that the request names.
func Decompress(requests []Values, document *Measurement) ([]Values, error) {
	if len(requests) == 1 && document.ProbeID == "" {
		v, err := requests[0].read(*document)
		return []Values{v}, err
	}
	of := make(map[string]*Values, len(requests))
	for i := range requests {
		of[requests[i].ProbeID] = &requests[i]
	}
	parts := []Measurement{*document}
	if document.ProbeID == "" {
		parts = document.Children
	}
	var all []Values
	for _, part := range parts {
		request := of[part.ProbeID]
		if request == nil {
			return all, fmt.Errorf("the document has values of probe %q, whose request is not known", part.ProbeID)
		}
		part.ProbeID = ""
		v, err := request.read(part)
		if err != nil {
			return all, fmt.Errorf("probe %s: %w", request.ProbeID, err)
		}
		all = append(all, v)
	}
	return all, nil
}

// read returns the values with the tuples of an element that has all values of the probe.
func (v Values) read(document Measurement) (Values, error) {
	r := unfolding{metrics: max(v.Metrics, 1)}
	v.Tuples = nil
	if v.Functions > 0 {
		r.leaves(document, Tuple{})
		for i := range r.tuples {
			r.tuples[i].Metric, r.tuples[i].Function = i/v.Functions, i%v.Functions
		}
		if len(r.tuples) != r.metrics*v.Functions {
			return v, fmt.Errorf("the document has %d statistics, the request asks for %d", len(r.tuples), r.metrics*v.Functions)
		}
		v.Tuples = r.tuples
		return v, nil
	}
	forest := v.Entities
	if len(forest) == 0 {
		forest = anyEntity()
	}
	var elements []Measurement
	if len(document.Children) > 0 || document.Value != "" || document.identified() || countNamed(forest) > 0 {
		elements = contents(forest, document)
	}
	err := r.siblings(forest, elements, Tuple{})
	v.Tuples = r.tuples
	return v, err
}

// unfolding reads the elements of one probe.
type unfolding struct {
	metrics int
	tuples  []Tuple
}

// leaves appends a tuple for each element without children, with the ids around it.
func (r *unfolding) leaves(m Measurement, ids Tuple) {
	for _, kind := range kinds() {
		if id := *m.id(kind); id != "" {
			*ids.id(kind) = id
		}
	}
	if len(m.Children) == 0 {
		ids.Value, ids.Sample, ids.Spread = m.Value, m.Sample, m.Spread
		r.tuples = append(r.tuples, ids)
	}
	for _, child := range m.Children {
		r.leaves(child, ids)
	}
}

// siblings reads the elements of entities at the same level. Each named entity has one
// element, a symbol has the others. If there are several symbols, each has ids of its kind.
func (r *unfolding) siblings(forest []Entity, elements []Measurement, ids Tuple) error {
	for i := range forest {
		e := &forest[i]
		n := 1
		if e.symbolic() {
			n = ofSymbol(forest[i:], elements)
		}
		if n < 0 || n > len(elements) {
			return fmt.Errorf("the document has no element for %s %s", e.Kind, e.ID)
		}
		own := elements[:n]
		elements = elements[n:]
		var err error
		if e.symbolic() {
			err = r.symbol(e, own, ids)
		} else {
			*ids.id(e.Kind) = e.ID
			err = r.inside(e, below(e, r.metrics, own[0]), ids)
			*ids.id(e.Kind) = ""
		}
		if err != nil {
			return err
		}
	}
	if len(elements) > 0 {
		return fmt.Errorf("the document has %d elements more than the request asks for", len(elements))
	}
	return nil
}

// ofSymbol returns how many elements the symbol at the beginning of forest has.
func ofSymbol(forest []Entity, elements []Measurement) int {
	kind, others := forest[0].Kind, forest[1:]
	most := len(elements) - countNamed(others)
	if countNamed(others) == len(others) {
		return most
	}
	n := 0
	for n < most && *elements[n].id(kind) != "" {
		n++
	}
	return n
}

// symbol reads the elements for * or ?. Consecutive elements without an id of the kind belong
// together: they describe the entities inside an entity that has no id.
func (r *unfolding) symbol(e *Entity, elements []Measurement, ids Tuple) error {
	for len(elements) > 0 {
		id := *elements[0].id(e.Kind)
		inside := elements[:1]
		if id == "" {
			for len(inside) < len(elements) && *elements[len(inside)].id(e.Kind) == "" {
				inside = elements[:len(inside)+1]
			}
			elements = elements[len(inside):]
		} else {
			one := elements[0]
			*one.id(e.Kind) = ""
			inside = contents(e.Children, one)
			elements = elements[1:]
		}
		*ids.id(e.Kind) = id
		if err := r.inside(e, inside, ids); err != nil {
			return err
		}
	}
	return nil
}

// inside reads the elements below an entity: of its children, or its values.
func (r *unfolding) inside(e *Entity, elements []Measurement, ids Tuple) error {
	if len(e.Children) > 0 {
		return r.siblings(e.Children, elements, ids)
	}
	if len(elements)%r.metrics != 0 {
		return fmt.Errorf("the document has %d values of one entity, the request asks for %d metrics", len(elements), r.metrics)
	}
	for i, m := range elements {
		ids.Metric = i % r.metrics
		ids.Value, ids.Sample, ids.Spread = m.Value, m.Sample, m.Spread
		r.tuples = append(r.tuples, ids)
	}
	return nil
}

// contents returns the elements that an element around entities contains. A Measured leaves
// out the element around a single one: see nest.
func contents(forest []Entity, m Measurement) []Measurement {
	if len(m.Children) == 0 || m.identified() || countNamed(forest) == 1 && alone(forest, m.Children) {
		return []Measurement{m}
	}
	return m.Children
}

// alone reports whether elements are inside that of the only named entity of a forest, because no
// symbol has an element beside it. Elements of the symbols would have ids, and its own one has none.
func alone(forest []Entity, elements []Measurement) bool {
	without := 0
	for i := range elements {
		if !slices.ContainsFunc(forest, func(e Entity) bool { return e.symbolic() && *elements[i].id(e.Kind) != "" }) {
			without++
		}
	}
	return without != 1 || len(elements) == 1
}

func countNamed(forest []Entity) (n int) {
	for i := range forest {
		if !forest[i].symbolic() {
			n++
		}
	}
	return n
}

// below returns the elements inside the element of a named entity: see grouping.named.
func below(e *Entity, metrics int, m Measurement) []Measurement {
	if len(e.Children) == 0 && metrics == 1 && len(m.Children) == 0 {
		return []Measurement{m}
	}
	return m.Children
}
