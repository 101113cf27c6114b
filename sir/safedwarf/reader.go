package safedwarf

import (
	"context"
	"debug/dwarf"
	"errors"
)

// Reader reads entries like a dwarf.Reader, whose SkipChildren needs stack for each level of
// entries.
type Reader struct {
	ctx  context.Context
	r    *dwarf.Reader
	last *dwarf.Entry
	read uint
}

// Reader returns a reader of all entries, which works until ctx ends.
func (d *Data) Reader(ctx context.Context) *Reader { return &Reader{ctx: ctx, r: d.dwarf.Reader()} }

// Seek positions the reader at an entry.
func (r *Reader) Seek(at dwarf.Offset) { r.r.Seek(at) }

// Next reads the next entry: nil at the end, and an entry without a tag at the end of a list
// of children.
func (r *Reader) Next() (e *dwarf.Entry, err error) {
	const often = 16 // entries between checks
	if r.read++; r.read%often == 1 {
		if err := r.ctx.Err(); err != nil {
			return nil, err
		}
	}
	r.last, err = r.r.Next()
	return r.last, err
}

// SkipChildren skips the children of the last entry.
func (r *Reader) SkipChildren() error {
	if r.last == nil || !r.last.Children || r.toSibling() {
		return nil
	}
	for depth := 1; depth > 0; {
		e, err := r.Next()
		switch {
		case err != nil || e == nil:
			return err
		case e.Tag == 0:
			depth--
		case e.Children && !r.toSibling():
			depth++
		}
	}
	return nil
}

// toSibling moves to the next sibling of the last entry, if the entry refers to it.
func (r *Reader) toSibling() bool {
	at, ok := r.last.Val(dwarf.AttrSibling).(dwarf.Offset)
	if ok = ok && at > r.last.Offset; ok {
		r.r.Seek(at)
	}
	return ok
}

// Entry reads the entry at an offset.
func (d *Data) Entry(ctx context.Context, at dwarf.Offset) (*dwarf.Entry, error) {
	r := d.Reader(ctx)
	r.Seek(at)
	e, err := r.Next()
	if err == nil && e == nil {
		err = errNoEntry
	}
	return e, err
}

var errNoEntry = errors.New("there is no entry at an offset in the debug information")

// Ranges returns the ranges of addresses of an entry.
func (d *Data) Ranges(e *dwarf.Entry) ([][2]uint64, error) { return d.dwarf.Ranges(e) }

// Limits of types. debug/dwarf needs stack for each type that a type refers to, and memory
// for all types that can be reached.
const (
	deepestType = 1 << 14
	mostTypes   = 1 << 20
)

// Type reads a type and all types that can be reached from it. Calls must not overlap.
func (d *Data) Type(ctx context.Context, at dwarf.Offset) (dwarf.Type, error) {
	if err := d.checkType(ctx, at); err != nil {
		return nil, err
	}
	return d.dwarf.Type(at)
}

// checkType visits the types in the order in which debug/dwarf does.
func (d *Data) checkType(ctx context.Context, at dwarf.Offset) error {
	seen := make(map[dwarf.Offset]bool)
	path := [][]dwarf.Offset{{at}} // of each level, the references that are still to visit
	for len(path) > 0 {
		top := &path[len(path)-1]
		if len(*top) == 0 {
			path = path[:len(path)-1]
			continue
		}
		next := (*top)[0]
		if *top = (*top)[1:]; seen[next] {
			continue
		}
		seen[next] = true
		refs, err := d.references(ctx, next)
		if err != nil {
			return err
		}
		path = append(path, refs)
		if len(path) > deepestType || len(seen) > mostTypes {
			return errors.New("the types refer to too many others")
		}
	}
	return nil
}

// references returns the types that a type refers to.
func (d *Data) references(ctx context.Context, at dwarf.Offset) (list []dwarf.Offset, err error) {
	r := d.Reader(ctx)
	r.Seek(at)
	e, err := r.Next()
	if err != nil || e == nil {
		return nil, err
	}
	add := func(e *dwarf.Entry) {
		if to, ok := e.Val(dwarf.AttrType).(dwarf.Offset); ok {
			list = append(list, to)
		}
	}
	add(e)
	for more := e.Children; more; {
		kid, err := r.Next()
		if err != nil || kid == nil || kid.Tag == 0 {
			return list, err
		}
		if kid.Tag == dwarf.TagMember || kid.Tag == dwarf.TagFormalParameter {
			add(kid)
		}
		if err := r.SkipChildren(); err != nil {
			return list, err
		}
	}
	return list, nil
}
