package engine

import (
	"mirador/omis"
	"mirador/omis/node"
)

// The most bytes that one request reads or writes: a list of integers takes about seventy times the memory
// of its contents.
const (
	maxMemoryList   = 1 << 16
	maxMemoryBinary = 1 << 22
)

// blocks describes pieces of memory of one size at a constant distance (OMIS 8.1.2).
type blocks struct {
	proc   *process
	addr   uint64
	size   int64
	stride int64
	count  int64
}

// blocksOf reads the parameters that the four services have in common; count is not among them.
func blocksOf(c *call) (b blocks, err error) {
	b.proc = c.object.(*process)
	if b.addr, err = c.address(1); err != nil {
		return b, err
	}
	if b.size, err = c.int(2); err != nil {
		return b, err
	}
	if b.stride, err = c.int(3); err != nil {
		return b, err
	}
	if b.size < 0 || b.stride < b.size {
		return b, omis.Errorf(omis.ParameterError, "blocklength must not be negative, stride not smaller than blocklength")
	}
	return b, nil
}

// joined makes one block of adjacent blocks.
func (b blocks) joined() blocks {
	if b.stride == b.size {
		b.size, b.count = b.size*b.count, min(b.count, 1)
	}
	return b
}

// at returns the address of a block, and its part of a buffer for all blocks.
func (b *blocks) at(i int64, all []byte) (uint64, []byte) {
	return b.addr + uint64(i)*uint64(b.stride), all[i*b.size : min((i+1)*b.size, int64(len(all)))]
}

func procReadMemory(_ *execution, c *call) ([]omis.Value, error) {
	raw, err := readBlocks(c, maxMemoryList)
	if err != nil {
		return nil, err
	}
	return []omis.Value{omis.List(mapped(raw, func(b byte) omis.Value { return omis.Int(int64(b)) })...)}, nil
}

func procReadMemoryBin(_ *execution, c *call) ([]omis.Value, error) {
	raw, err := readBlocks(c, maxMemoryBinary)
	if err != nil {
		return nil, err
	}
	return []omis.Value{omis.Binary(raw)}, nil
}

func readBlocks(c *call, limit int64) ([]byte, error) {
	b, err := blocksOf(c)
	if err != nil {
		return nil, err
	}
	if b.count, err = c.int(4); err != nil {
		return nil, err
	}
	switch {
	case b.count < 0:
		return nil, omis.Errorf(omis.ParameterError, "count must not be negative")
	case b.size > limit || b.count > limit || b.size*b.count > limit:
		return nil, omis.Errorf(omis.ParameterError, "%s cannot read more than %d bytes at once", c.service.Name, limit)
	case b.size == 0:
		return nil, nil
	}
	buf := make([]byte, b.size*b.count)
	return buf, b.joined().read(buf)
}

func (b blocks) read(buf []byte) error {
	at := b.proc.at()
	for i := range b.count {
		from, block := b.at(i, buf)
		n, err := at.node.ReadMemory(at.id, from, block)
		if err != nil {
			return err
		}
		if n < len(block) {
			return omis.Errorf(omis.ParameterError, "cannot read %s at %#x: nothing is mapped there", b.proc.token, from+uint64(n))
		}
	}
	return nil
}

func procWriteMemory(x *execution, c *call) ([]omis.Value, error) {
	data := make([]byte, len(c.args[4].List))
	for i, v := range c.args[4].List {
		n, ok := v.Int64()
		if !ok || n < -128 || n > 255 {
			return nil, omis.Errorf(omis.ParameterError, "value %d of val is no byte", i+1)
		}
		data[i] = byte(n)
	}
	return nil, x.writeBlocks(c, data, maxMemoryList)
}

func procWriteMemoryBin(x *execution, c *call) ([]omis.Value, error) {
	return nil, x.writeBlocks(c, []byte(c.args[4].Str), maxMemoryBinary)
}

// writeBlocks writes as many blocks as the data fills. The last one may be shorter.
func (x *execution) writeBlocks(c *call, data []byte, limit int64) error {
	b, err := blocksOf(c)
	if err != nil {
		return err
	}
	switch size := int64(len(data)); {
	case size > limit:
		return omis.Errorf(omis.ParameterError, "%s cannot write more than %d bytes at once", c.service.Name, limit)
	case size == 0:
		return nil
	case b.size == 0:
		return omis.Errorf(omis.ParameterError, "%d bytes cannot be written in blocks of none", size)
	default:
		b.count = (size-1)/b.size + 1
	}
	at := b.proc.at()
	writer, err := capability(at.node, at.node.Can.MemoryWriter, c.service)
	if err != nil {
		return err
	}
	x.e.admin.Lock()
	x.e.placing.Unprogram(&b.proc.programs, b.addr, uint64(b.stride*(b.count-1)+b.size))
	x.e.admin.Unlock()
	if b.stride == b.size || b.count == 1 {
		return writer.WriteMemory(at.id, b.addr, data)
	}
	return b.write(writer, at.id, data)
}

// write writes all blocks. If one of them fails, it restores the others (OMIS 7.2.3).
func (b *blocks) write(w node.MemoryWriter, id omis.ProcID, data []byte) error {
	old := make([]byte, len(data))
	if err := b.read(old); err != nil {
		return err
	}
	for i := range b.count {
		to, block := b.at(i, data)
		if err := w.WriteMemory(id, to, block); err != nil {
			return b.undo(w, id, old, i, err)
		}
	}
	return nil
}

func (b *blocks) undo(w node.MemoryWriter, id omis.ProcID, old []byte, written int64, cause error) error {
	for i := range written {
		to, block := b.at(i, old)
		if err := w.WriteMemory(id, to, block); err != nil {
			return fatal(cause, "%d of %d blocks are written and cannot be restored: %v", written, b.count, err)
		}
	}
	return cause
}

// fatal marks an error after which the object has changed (OMIS 7.3.1).
func fatal(cause error, format string, args ...any) error {
	more := omis.Errorf(omis.StatusOf(cause)|omis.Fatal, format, args...)
	more.Msg = cause.Error() + "; " + more.Msg
	return more
}
