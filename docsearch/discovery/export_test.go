package discovery

var ParseRecord = parseRecord
