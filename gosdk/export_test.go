package gosdk

var Encode = encode
