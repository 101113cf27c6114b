package engine

import "mirador/omis"

// maxRegisters is more than any processor has.
const maxRegisters = 1024

// bank is a thread's registers.
type bank struct {
	omis.Registers
	proc omis.ProcID
	tid  int
}

func bankOf(c *call) (bank, error) {
	t := c.object.(*thread)
	at := t.proc.at()
	regs, err := capability[omis.Registers](at.node, c.service)
	return bank{regs, at.id, t.tid}, err
}

// within makes a number beyond the last register, counted from the first one on, all
// that there are: the specification's own example reads 32 of whatever processor it
// may be (OMIS 5.3.2). Who counts from another one on has a certain processor in mind.
func within(first, n, count int) int {
	if first == 0 {
		return min(n, count)
	}
	return n
}

// span reads which registers are meant.
func (c *call) span() (first, n int, err error) {
	if first, err = c.small(1); err != nil {
		return 0, 0, err
	}
	if n, err = c.small(2); err != nil {
		return 0, 0, err
	}
	return first, n, checkSpan(first, n)
}

func checkSpan(first, n int) error {
	if first < 0 || n < 0 || first > maxRegisters || n > maxRegisters {
		return omis.Errorf(omis.ParameterError, "there are no %d registers from register %d on", n, first)
	}
	return nil
}

func threadReadIntRegs(_ *execution, c *call) ([]omis.Value, error) {
	first, n, err := c.span()
	if err != nil {
		return nil, err
	}
	b, err := bankOf(c)
	if err != nil {
		return nil, err
	}
	count, _ := b.RegisterCounts()
	regs, err := b.ReadIntRegs(b.proc, b.tid, first, within(first, n, count))
	if err != nil {
		return nil, err
	}
	list := make([]omis.Value, len(regs))
	for i, r := range regs {
		list[i] = omis.Uint(r)
	}
	return []omis.Value{omis.List(list...)}, nil
}

func threadReadFPRegs(_ *execution, c *call) ([]omis.Value, error) {
	first, n, err := c.span()
	if err != nil {
		return nil, err
	}
	b, err := bankOf(c)
	if err != nil {
		return nil, err
	}
	_, count := b.RegisterCounts()
	regs, err := b.ReadFPRegs(b.proc, b.tid, first, within(first, n, count))
	if err != nil {
		return nil, err
	}
	list := make([]omis.Value, len(regs))
	for i, r := range regs {
		list[i] = omis.Float(r)
	}
	return []omis.Value{omis.List(list...)}, nil
}

func threadWriteIntRegs(_ *execution, c *call) ([]omis.Value, error) {
	first, err := c.firstWritten()
	if err != nil {
		return nil, err
	}
	regs := make([]uint64, len(c.args[2].List))
	for i, v := range c.args[2].List {
		var ok bool
		if regs[i], ok = v.Uint64(); !ok {
			return nil, omis.Errorf(omis.ParameterError, "value %d of val does not fit into a register", i+1)
		}
	}
	b, err := bankOf(c)
	if err != nil {
		return nil, err
	}
	return nil, b.WriteIntRegs(b.proc, b.tid, first, regs)
}

func threadWriteFPRegs(_ *execution, c *call) ([]omis.Value, error) {
	first, err := c.firstWritten()
	if err != nil {
		return nil, err
	}
	regs := make([]float64, len(c.args[2].List))
	for i, v := range c.args[2].List {
		regs[i], _ = v.Number()
	}
	b, err := bankOf(c)
	if err != nil {
		return nil, err
	}
	return nil, b.WriteFPRegs(b.proc, b.tid, first, regs)
}

func (c *call) firstWritten() (int, error) {
	first, err := c.small(1)
	if err != nil {
		return 0, err
	}
	return first, checkSpan(first, min(len(c.args[2].List), maxRegisters+1))
}

func threadGoto(_ *execution, c *call) ([]omis.Value, error) {
	addr, err := c.address(1)
	if err != nil {
		return nil, err
	}
	b, err := bankOf(c)
	if err != nil {
		return nil, err
	}
	return nil, b.Goto(b.proc, b.tid, addr)
}

func threadCall(_ *execution, c *call) ([]omis.Value, error) {
	addr, err := c.address(1)
	if err != nil {
		return nil, err
	}
	b, err := bankOf(c)
	if err != nil {
		return nil, err
	}
	return nil, b.Call(b.proc, b.tid, addr)
}
