package stdio

import "bufio"

// ReadLine is readLine, without its error.
func ReadLine(in *bufio.Reader, limit int) []byte {
	line, _ := readLine(in, limit)
	return line
}
