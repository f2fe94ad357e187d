// libqplan.so is made of archives alone; CMake wants a source to know the language.
