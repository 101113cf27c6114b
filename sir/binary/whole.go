package binary

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"mirador/sir"
)

// copies has all code that the compiler made of a function of the source.
type copies struct {
	definitions []definition
	instances   []instance
	more        bool // not all units were searched
}

const notDescribed = "its debug information, which says where it is inlined, is missing"

// Whole returns all code of a function as one region: its own, that of its versions for certain arguments, and
// all places where it is inlined. Its id is that of the function and "/all". Callers share the region and must
// not modify it.
func (im *Image) Whole(ctx context.Context, unit *sir.Region) (*sir.Region, error) {
	key := "\x00\x00" + unit.ID
	if known, ok := im.innerLines.find(key); ok {
		return &known[0], nil
	}
	found, err := im.copiesOf(ctx, unit, true)
	if err == nil && found == nil {
		err = &CodeError{unit.Name, unit.Entry, notDescribed}
	}
	if err != nil {
		return nil, err
	}
	r := sir.Region{ID: unit.ID + sir.AllSuffix, Name: unit.Name, Symbol: unit.Symbol, Kind: sir.All, File: unit.File, Line: unit.Line, Code: &sir.Code{}}
	for _, d := range found.definitions {
		join(r.Code, im.own(d))
	}
	if m := newLineMaker(ctx, im, ""); len(found.instances) > 0 {
		join(r.Code, m.joined(found.instances))
	}
	finish(&r)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	im.innerLines.enter(key, []sir.Region{r})
	return &r, nil
}

// own returns the code of a function that is not inlined.
func (im *Image) own(d definition) *sir.Code {
	f, _ := im.find(d.entry)
	u := sir.Region{Name: f.name, Kind: sir.Function, Entry: d.entry}
	c := &sir.Code{Ranges: []sir.Range{{Low: f.addr, High: f.addr + f.size}}, Enter: []sir.Edge{{To: d.entry}}}
	entries, err := im.Entries(&u)
	if err != nil {
		c.Uncounted = err.Error()
		return c
	}
	exits, err := im.Exits(&u)
	if err != nil {
		c.Untimed = err.Error()
	}
	c.Entries, c.Exits = entries, exits
	return c
}

// Copies says where a function has code besides its own. It reads the debug information of the whole program
// only if that is fast; otherwise it reads that of the function's compile unit.
func (im *Image) Copies(ctx context.Context, unit *sir.Region) (c sir.Copies) {
	found, err := im.copiesOf(ctx, unit, false)
	if err != nil || found == nil {
		return c
	}
	for _, d := range found.definitions {
		if f, _ := im.find(d.entry); d.entry != unit.Entry {
			c.Versions = append(c.Versions, f.name)
		}
	}
	for i := range found.instances {
		if found.instances[i].low() == 0 {
			continue
		}
		c.Places++
		f, _ := im.find(found.instances[i].low())
		if into := sourceName(withoutCold(f.name)); into != "" && !slices.Contains(c.Into, into) {
			c.Into = append(c.Into, into)
		}
	}
	c.More = found.more
	return c
}

// Limits for the debug information that is read to say where a function is inlined.
const (
	mostForUnit    = 64 << 20
	mostForProgram = 6 << 20
)

// copiesOf finds all code of a function, nil if the debug information does not describe it. Unless all must be
// known, it reads only what can be read fast, and nothing more if the compiler says that no code is inlined. In
// languages with linkage names other units may inline a function without this one's saying it.
func (im *Image) copiesOf(ctx context.Context, unit *sir.Region, all bool) (*copies, error) {
	if im.lines.data == nil || !all && im.lines.memory > mostForUnit {
		return nil, nil
	}
	d, err := im.lines.data.get(ctx)
	if d == nil {
		return nil, err
	}
	at, err := im.described(ctx, d, unit.Entry)
	var of *sourceFunction
	if at != nil {
		of = at.sourceFunction
	}
	small := im.lines.memory <= mostForProgram
	if err != nil || of == nil || !all && !of.inlined && !(small && of.symbol != "") {
		return nil, err
	}
	units := d.units
	found := &copies{more: !all && !small}
	if found.more {
		units = d.unitsAt(unit.Entry)
	}
	for _, u := range units {
		code, err := im.lines.codeOf(ctx, d, u)
		if err != nil {
			return nil, err
		}
		found.add(im, of, code)
	}
	return found, nil
}

// Declared returns the file and the line where a function is declared, "" if the debug information does not say it,
// and when the file of the image was written.
func (im *Image) Declared(ctx context.Context, unit *sir.Region) (file string, line int, built time.Time, err error) {
	built = time.Unix(im.stamp.mtim.Unix())
	if im.lines.data == nil {
		return "", 0, built, nil
	}
	d, err := im.lines.data.get(ctx)
	if d == nil {
		return "", 0, built, err
	}
	at, err := im.described(ctx, d, unit.Entry)
	if at == nil {
		return "", 0, built, err
	}
	return at.declared.file, at.declared.line, built, nil
}

// described returns what the debug information says of the function that begins at an address, nil for nothing.
func (im *Image) described(ctx context.Context, d *lineData, entry uint64) (*definition, error) {
	for _, u := range d.unitsAt(entry) {
		code, err := im.lines.codeOf(ctx, d, u)
		if err != nil {
			return nil, err
		}
		i, ok := slices.BinarySearchFunc(code.definitions, entry, func(d definition, a uint64) int { return cmp.Compare(d.entry, a) })
		if ok {
			return &code.definitions[i], nil
		}
	}
	return nil, nil
}

// add adds what a unit has of a function. The end of a function of which gcc inlines only the beginning has a symbol
// and no executions of its own.
func (c *copies) add(im *Image, of *sourceFunction, code *unitCode) {
	for _, d := range code.definitions {
		if !d.same(of) {
			continue
		}
		if f, ok := im.find(d.entry); ok && f.addr == d.entry && !strings.Contains(f.name, ".part.") && !coldSuffix.MatchString(f.name) {
			c.definitions = append(c.definitions, d)
		}
	}
	for _, i := range code.instances {
		if i.same(of) {
			c.instances = append(c.instances, i)
		}
	}
}

// same reports whether two descriptions, perhaps of two units, are of one function.
func (o *sourceFunction) same(p *sourceFunction) bool {
	return o == p || o.called() == p.called() && (o.external && p.external || o.declared == p.declared)
}
