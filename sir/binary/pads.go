package binary

import (
	"cmp"
	"slices"
)

// padRange is code whose exceptions are handled at an address of the function: at pad.
type padRange struct{ low, end, pad uint64 }

func padOf(pads []padRange, at uint64) uint64 {
	for _, p := range pads {
		if p.low <= at && at < p.end {
			return p.pad
		}
	}
	return 0
}

// handlerTable says where the tables of exception handlers of functions are, sorted by the
// functions' addresses.
type handlerTable []handlers

type handlers struct{ low, table uint64 }

// mostPads limits the call sites of one function.
const mostPads = 1 << 16

// readHandlers reads from .eh_frame which functions have tables of exception handlers. It returns
// none if the section is invalid.
func (im *Image) readHandlers() (t handlerTable) {
	s := im.elf.Section(".eh_frame")
	if s == nil || s.Size > maxFrames || s.Addr == 0 {
		return nil
	}
	_ = guard(im.path, func() error {
		data, err := im.whole.bytes(s)
		if err != nil {
			return err
		}
		encodings := map[uint64]frameEncoding{}
		for at := uint64(0); at+8 <= uint64(len(data)); {
			length := uint64(le32(data[at:]))
			body := at + 4
			if length < 4 || length > uint64(len(data))-body {
				break
			}
			r := tableReader{b: data[body : body+length], at: s.Addr + body}
			if id := uint64(r.fixed(4)); id == 0 {
				encodings[at] = r.commonEntry()
			} else if e := encodings[body-id]; e.table != omitted {
				low := r.pointer(e.code)
				r.pointer(e.code & 0x0f)
				r.uleb() // size of the augmentation data
				if table := r.pointer(e.table); table != 0 && !r.bad {
					t = append(t, handlers{low, table})
				}
			}
			at = body + length
		}
		return nil
	})
	slices.SortFunc(t, func(a, b handlers) int { return cmp.Compare(a.low, b.low) })
	return t
}

// frameEncoding says how the entries of .eh_frame that refer to a common entry store addresses.
type frameEncoding struct{ code, table byte }

// omitted is the encoding of pointers to tables if the functions have no tables.
const omitted = 0

// commonEntry reads a common entry behind its id.
func (r *tableReader) commonEntry() (e frameEncoding) {
	r.fixed(1) // version
	augmentation := r.text()
	if len(augmentation) == 0 || augmentation[0] != 'z' {
		return e
	}
	r.uleb() // code alignment
	r.uleb() // data alignment
	r.uleb() // return address
	r.uleb() // size of the augmentation data
	for _, c := range augmentation[1:] {
		switch c {
		case 'R':
			e.code = byte(r.fixed(1))
		case 'L':
			e.table = byte(r.fixed(1))
		case 'P':
			r.pointer(byte(r.fixed(1)))
		}
	}
	if r.bad || e.table == 0xff {
		e.table = omitted
	}
	return e
}

// landingPads returns the ranges of a part of a function whose exceptions the function handles. The
// error is a *CodeError if the table of handlers is damaged.
func (im *Image) landingPads(part symbol) ([]padRange, error) {
	all := im.handlers()
	i, ok := slices.BinarySearchFunc(all, part.addr, func(h handlers, a uint64) int { return cmp.Compare(h.low, a) })
	if !ok {
		return nil, nil
	}
	const most = 1 << 20
	r := tableReader{b: im.data(all[i].table, most), at: all[i].table}
	begin := part.addr
	if e := byte(r.fixed(1)); e != 0xff {
		begin = r.pointer(e)
	}
	if e := byte(r.fixed(1)); e != 0xff {
		r.uleb() // where the table of types is
	}
	e := byte(r.fixed(1))
	size := r.uleb()
	if size > uint64(len(r.b)) {
		r.bad = true
	}
	var pads []padRange
	for end := uint64(len(r.b)) - size; !r.bad && uint64(len(r.b)) > end && len(pads) < mostPads; {
		low := part.addr + r.pointer(e&0x0f)
		length := r.pointer(e & 0x0f)
		pad := r.pointer(e & 0x0f)
		if r.uleb(); pad != 0 {
			pads = append(pads, padRange{low, low + length, begin + pad})
		}
	}
	if r.bad {
		return nil, &CodeError{part.name, all[i].table, "a damaged table of exception handlers"}
	}
	return pads, nil
}

// tableReader reads the values of .eh_frame and of tables of exception handlers. After the end it
// returns zeros, and bad is true.
type tableReader struct {
	b   []byte
	at  uint64 // address of b
	bad bool
}

func (r *tableReader) take(n int) []byte {
	if n > len(r.b) {
		r.b, r.bad = nil, true
		return make([]byte, n)
	}
	taken := r.b[:n]
	r.b, r.at = r.b[n:], r.at+uint64(n)
	return taken
}

// fixed reads a number of 1 to 8 bytes.
func (r *tableReader) fixed(n int) (v uint64) {
	for i, b := range r.take(n) {
		v |= uint64(b) << (8 * i)
	}
	return v
}

func (r *tableReader) uleb() (v uint64) {
	for shift := 0; !r.bad; shift += 7 {
		b := r.fixed(1)
		if shift < 64 {
			v |= (b & 0x7f) << shift
		}
		if b < 0x80 {
			break
		}
	}
	return v
}

func (r *tableReader) text() (s []byte) {
	for c := byte(r.fixed(1)); c != 0; c = byte(r.fixed(1)) {
		s = append(s, c)
	}
	return s
}

// pointer reads a value of an encoding (DW_EH_PE). It returns 0 for a null pointer, and for a pointer
// that must be read from memory, which addresses of code never are.
func (r *tableReader) pointer(encoding byte) uint64 {
	at, v := r.at, uint64(0)
	switch encoding & 0x0f {
	case 0x00, 0x04, 0x0c:
		v = r.fixed(8)
	case 0x01:
		v = r.uleb()
	case 0x02:
		v = r.fixed(2)
	case 0x03:
		v = r.fixed(4)
	case 0x0a:
		v = uint64(int64(int16(r.fixed(2))))
	case 0x0b:
		v = uint64(int64(int32(r.fixed(4))))
	default:
		r.bad = true
	}
	if v != 0 && encoding&0x70 == 0x10 {
		v += at
	}
	if encoding&0x80 != 0 {
		return 0
	}
	return v
}
