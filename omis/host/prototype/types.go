package prototype

// Kind is the kind of a type.
type Kind uint8

const (
	Void Kind = iota
	Integer
	Floating  // 4, 8 or 16 bytes; 16 is long double
	Pointer   // to Elem
	Aggregate // a structure or union as a whole
)

// Type is a C type with the properties that calls depend on.
type Type struct {
	Kind   Kind
	Size   int // bytes; 0 if not known
	Signed bool
	Char   bool  // Integer: a character; a pointer to it is a string
	Elem   *Type // Pointer

	// Eights is the class of each eight bytes of an Aggregate in registers (System V ABI
	// for x86-64, 3.2.3); it is empty if the aggregate is passed in memory.
	Eights []Class
}

// Class is the kind of register that holds eight bytes of an aggregate.
type Class uint8

const (
	ClassInteger Class = iota + 1
	ClassVector
)

// Direction says when to read what a pointer points to.
type Direction uint8

const (
	In  Direction = 1 << iota // at the start of the call
	Out                       // at its end
)

// LengthKind says where a length comes from.
type LengthKind uint8

const (
	One      LengthKind = iota // no length: one element, or a string
	Constant                   // Scale
	OfParam                    // Scale times the parameter
	AtParam                    // Scale times what the parameter points to
	OfResult                   // Scale times the result
)

// Length is the amount that a pointer points to.
type Length struct {
	Kind  LengthKind
	Param int // index of the parameter
	Scale int
}

// Param is a parameter of a function.
type Param struct {
	Name      string
	Type      Type
	Direction Direction
	Length    Length
}

// Func is the prototype of a function.
type Func struct {
	Name     string
	Result   Type
	Params   []Param
	Variadic bool
}

func integer(size int, signed bool) Type { return Type{Kind: Integer, Size: size, Signed: signed} }

// PointerTo returns a pointer type.
func PointerTo(t Type) Type { return Type{Kind: Pointer, Size: 8, Elem: &t} }

var (
	character = Type{Kind: Integer, Size: 1, Signed: true, Char: true}
	address   = PointerTo(Type{})
)

// Untyped returns a function with an unknown prototype: six integers.
func Untyped(name string) *Func {
	f := &Func{Name: name, Result: integer(8, true)}
	for range 6 {
		f.Params = append(f.Params, Param{Type: integer(8, true)})
	}
	return f
}

// Normalize adds the directions that C implies: a parameter of type char * without a
// direction is a string that the function reads, so it is decoded at the start of a call.
func (f *Func) Normalize() *Func {
	for i := range f.Params {
		p := &f.Params[i]
		if p.Direction == 0 && p.Type.Kind == Pointer && p.Type.Elem.Char {
			p.Direction = In
		}
	}
	return f
}

// typeNames are the types that C libraries and the kernel declare (x86-64).
var typeNames = func() map[string]Type {
	names := map[string]Type{"va_list": address, "FILE": {Kind: Aggregate}, "DIR": {Kind: Aggregate}}
	for _, group := range []struct {
		t     Type
		names []string
	}{
		{integer(1, true), []string{"int8_t", "s8"}},
		{integer(1, false), []string{"uint8_t", "u8", "__u8"}},
		{integer(2, true), []string{"int16_t", "s16"}},
		{integer(2, false), []string{"uint16_t", "u16", "sa_family_t", "in_port_t"}},
		{integer(4, true), []string{"int32_t", "s32", "pid_t", "key_t", "clockid_t", "timer_t", "key_serial_t", "rwf_t", "wchar_t", "mqd_t", "aio_context_id"}},
		{integer(4, false), []string{"uint32_t", "u32", "uid_t", "gid_t", "mode_t", "socklen_t", "id_t", "useconds_t", "wint_t", "in_addr_t", "umode_t", "qid_t"}},
		{integer(8, true), []string{"int64_t", "s64", "ssize_t", "off_t", "loff_t", "time_t", "suseconds_t", "ptrdiff_t", "intptr_t", "clock_t", "intmax_t", "off64_t", "blkcnt_t"}},
		{integer(8, false), []string{"uint64_t", "u64", "size_t", "dev_t", "ino_t", "uintptr_t", "nlink_t", "pthread_t", "uintmax_t", "aio_context_t", "nfds_t", "rlim_t"}},
	} {
		for _, name := range group.names {
			names[name] = group.t
		}
	}
	return names
}()
